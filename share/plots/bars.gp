# SPDX-License-Identifier: BSD-3-Clause
# Bars of a CSV file: its first column names the groups, its other columns are
# a series each, named by the heading. README says which variables there are.
#   gnuplot -e "data='compare.csv'; unit='s'; out='compare.pdf'" bars.gp
load ARG0[1:strlen(ARG0) - strlen("bars.gp")] . "common.gp"
if (!exists("ylabel")) ylabel = ""
if (!exists("unit")) unit = ""
if (!exists("ylog")) ylog = 0
if (!exists("stacked")) stacked = 0
if (!exists("pairs")) pairs = 0
if (!exists("level")) level = ""
if (!exists("doubt")) doubt = 0
if (!exists("columns")) columns = 2
if (!exists("ratio")) ratio = columns == 1 ? 0.8 : 0.45
eval paper

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
most = 0
do for [k = 1:count] {
	stats data using (stacked ? total(k) : cell(k)) nooutput name "V"
	if (V_max > most) { most = V_max }
	if (V_min < low) { low = V_min }
}

f = unit_factor(unit, most)
set ylabel ylabel . unit_label(unit, most)
set format y unit_format(unit, most)
set xrange [-0.6:G_records - 0.4]
if (ylog) { set logscale y ylog; set yrange [0.9999 * ylog ** floor(log(f * low) / log(ylog)):1.5 * f * most] } else { set yrange [0:*] }
if (ylog == 10) { eval log_tics(unit_format(unit, most), f * low, f * most) }
unset grid
set grid y lt 1 lc rgb "#d4d4d4" lw 0.4
set xtics scale 0 ()
do for [i = 1:G_records] { set xtics add (tic(brief(group[i], 24)) i - 1) }
if (G_max * G_records > 13 * width_in) { set xtics rotate by -35 }
longest = 0
do for [k = 1:count] { longest = strlen(name[k]) > longest ? strlen(name[k]) : longest }
eval key_width(longest)
eval titles(count > 1)

# In pairs the second is the first, pale. Fills differ in lightness and hatching.
hue(k) = pairs ? (k + 1) / 2 : k
paint(k) = rgb(nth("#0072b2 #e69f00 #4d4d4d #a6dbf5 #d55e00 #cc79a7 #009e73", hue(k)))
width = stacked ? 0.7 : 0.8 / count
place(k) = stacked ? 0 : (k - 0.5 * (count + 1)) * width
# the tallest of a stack first: the others hide what is theirs of it
turn(k) = stacked ? count + 1 - k : k
height(k) = stacked ? total(k) : cell(k)
plot for [k = 1:count] data using ($0 + place(turn(k))):(f * height(turn(k))):(width) \
	with boxes fs solid (pairs && k % 2 == 0 ? 0.35 : 1) border rgb ink \
	lc rgb paint(turn(k)) lw 0.5 title brief(name[turn(k)], 40), \
	for [k = 1:levels] data using ($0 - 0.45):(f * cell(count + 1 + 2 * doubt)):(0.9):(0) \
	with vectors nohead lw 1.6 lc rgb ink title level, \
	for [k = 1:(doubt ? 1 : 0)] data using 0:(f * cell(count + 1)):(0):(f * (cell(count + 2) - cell(count + 1))) \
	with vectors heads size graph 0.005, 90 lw 1.2 lc rgb ink notitle
