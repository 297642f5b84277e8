# SPDX-License-Identifier: BSD-3-Clause
# Bars of a CSV file: its first column names the groups, its other columns are
# a series each, named by the heading. README says which variables there are.
#   gnuplot -e "data='compare.csv'; unit='s'; out='compare.pdf'" bars.gp
folder = ARG0[1:strlen(ARG0) - strlen("bars.gp")]
if (!exists("columns")) columns = 2
load folder . "common.gp"
if (!exists("ylabel")) ylabel = ""
if (!exists("unit")) unit = ""
if (!exists("ylog")) ylog = 0
if (!exists("stacked")) stacked = 0
if (!exists("pairs")) pairs = 0
if (!exists("level")) level = ""
if (!exists("doubt")) doubt = 0
if (!exists("groups")) groups = ""
if (!exists("series")) series = ""
if (!exists("hatched")) hatched = ""
if (!exists("best")) best = 0
if (!exists("best_series")) best_series = 1
if (!exists("best_text")) best_text = ""

# the heading, and the range over all series
unset datafile columnheaders
stats data every ::0::0 using (0) nooutput
count = STATS_columns - 1
array name[200]
stats data every ::0::0 using ((sum [k = 1:count] (name[k] = strcol(k + 1), 0)), 0) nooutput
levels = level ne "" && name[count] eq level
count = count - levels - 2 * (doubt ? 1 : 0)
set datafile columnheaders
cell(k) = column(k + 1)
total(k) = sum [j = 1:k] cell(j)
array group[1000]
stats data using (group[$0 + 1] = strcol(1), strlen(strcol(1))) nooutput name "G"
low = 1e300
most_of = 0
do for [k = 1:count] {
	stats data using (stacked ? total(k) : cell(k)) nooutput name "V"
	if (V_max > most_of) { most_of = V_max }
	if (V_min < low) { low = V_min }
}
f = unit_factor(unit, most_of)

# What a stack is made of looks as it does in the picture of a step; a series looks as
# its name says. In pairs the second is the first, pale.
parts = "compute #0072b2 exposed #d9d9d9 rest #4d4d4d"
part_of(s) = (at = 0, sum [i = 1:words(parts) / 2] (strstrt(s, word(parts, 2 * i - 1)) ? (at = i) : 0), at)
do for [k = 1:count] { dummy = claim(name[pairs ? 2 * int((k + 1) / 2) - 1 : k]) }
if (pairs) { do for [k = 2:count:2] { C_number[k] = C_number[k - 1] } }
dummy = settle(0)
if (pairs) { do for [k = 2:count:2] { C_look[k] = C_look[k - 1] } }
shade(c, unit) = (c / unit % 256 * 35 + 255 * 65) / 100 * unit
faded(c) = shade(c, 65536) + shade(c, 256) + shade(c, 1)
hue(k) = stacked && part_of(name[k]) ? rgb(word(parts, 2 * part_of(name[k]))) : pairs && k % 2 == 0 ? faded(paint(k)) : paint(k)
is_hatched(i, k) = strstrt(hatched, sprintf(" %d:%d ", i, stacked ? 0 : k)) > 0
if (series ne "") { dummy = entry(series . ":", "text", 0, 0) }
if (count > 1) { do for [k = 1:count] { dummy = entry(name[k], "box", hue(k), 0) } }
if (levels) { dummy = entry(level, "tick", rgb(ink), 0) }
if (hatched ne "") { dummy = entry("with costs that nobody has measured (+?)", "hatch", rgb(faint), 0) }

# A row for each group, a bar in it for each series.
bar_in = stacked || count == 1 ? 0.15 : 0.1
pitch_in = stacked || count == 1 ? 0.21 : bar_in * count + 0.09
if (pitch_in * G_records > 8) { pitch_in = 8.0 / G_records }
every_row = ceil(0.13 / pitch_in)
plot_in = pitch_in * G_records + 0.06
load folder . "layout.gp"
widest = 0
do for [i = 1:G_records] { widest = em(group[i]) > widest ? em(group[i]) : widest }
widest = widest > 0.3 * room ? 0.3 * room : widest
left_in = 0.14 + widest * em_in + (groups eq "" ? 0 : 0.17)
set lmargin at screen across(left_in)
set rmargin at screen across(width_in - 0.12)
if (groups ne "") { set label groups at screen across(0.1), graph 0.5 center rotate textcolor rgb ink }
set label ylabel . unit_label(unit, most_of) at graph 0.5, screen 0.09 / height_in center textcolor rgb ink

# Each bar of a stack says its height; room for the longest, right of it.
end(i, v) = stacked ? human(unit, v) . (is_hatched(i, 0) ? " +?" : "") . (i == best && best_text ne "" ? ", " . best_text : "") : \
	i == best ? best_text : ""
height(k) = stacked ? total(k) : cell(k)
tip(k) = doubt ? (column(count + 3) > height(k) ? column(count + 3) : height(k)) : height(k)
plot_ems = (width_in - left_in - 0.12) / em_in
limit = 1.04 * most_of
needs(v, text) = text eq "" ? 0 : v / (1 - (em(text) + 1) / plot_ems)
at_end(k) = stacked ? k == count : k == best_series
do for [k = 1:count] {
	stats data using (at_end(k) ? needs(tip(k), end($0 + 1, height(k))) : tip(k)) nooutput name "V"
	if (V_max > limit) { limit = V_max }
}
if (ylog) { set logscale x ylog; set xrange [0.9999 * ylog ** floor(log(f * low) / log(ylog)):1.5 * f * limit] } \
else { set xrange [0:f * limit] }
set format x unit_format(unit, most_of)
if (ylog == 10) { eval log_tics("x", unit_format(unit, most_of), f * low, f * most_of) }
set yrange [G_records + 0.5 + 0.03 / pitch_in:0.5 - 0.03 / pitch_in]
unset grid
set grid x lt 1 lc rgb "#d4d4d4" lw 0.4
set ytics scale 0 ()
do for [i = 1:G_records:every_row] { set ytics add (tic(brief(group[i], widest)) i) }

wide = bar_in / pitch_in > 0.8 ? 0.8 : bar_in / pitch_in
mid(k) = $0 + 1 + (stacked ? 0 : (k - 0.5 * (count + 1)) * wide)
from(k) = stacked && k > 1 ? total(k - 1) : ylog ? 1e-300 : 0
solid(i, k, v) = is_hatched(i, k) ? NaN : v
hatch(i, k, v) = is_hatched(i, k) ? v : NaN
plot for [k = 1:count] data using (solid($0 + 1, k, f * height(k))):(mid(k)):(f * from(k)):(f * height(k)): \
	(mid(k) - 0.5 * wide):(mid(k) + 0.5 * wide) with boxxyerror fs solid border rgb ink fc rgb hue(k) lw 0.5, \
	for [k = 1:count] data using (hatch($0 + 1, k, f * height(k))):(mid(k)):(f * from(k)):(f * height(k)): \
	(mid(k) - 0.5 * wide):(mid(k) + 0.5 * wide) with boxxyerror fs pattern 4 border rgb ink \
	fc rgb (hue(k) == rgb(pale) ? rgb(faint) : hue(k)) lw 0.5, \
	for [k = 1:levels] data using (f * cell(count + 1 + 2 * doubt)):($0 + 1 - 0.42):(0):(0.84) \
	with vectors nohead lw 1.6 lc rgb ink, \
	for [k = 1:(doubt ? 1 : 0)] data using (f * cell(count + 1)):($0 + 1):(f * (cell(count + 2) - cell(count + 1))):(0) \
	with vectors heads size graph 0.005, 90 lw 1.2 lc rgb ink, \
	for [k = (stacked ? count : best_series):(stacked ? count : best_series)] \
	data using (f * tip(k)):(mid(k)):(end($0 + 1, height(k))) with labels left offset 0.6, 0 textcolor rgb ink
