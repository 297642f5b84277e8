# SPDX-License-Identifier: BSD-3-Clause
# Curves of a CSV file with a heading: README says which variables there are.
#   gf-sim plan.json --ranks 2,4,8 --table=csv > s.csv
#   gnuplot -e "data='s.csv'; x='ranks'; y='speedup'; out='s.pdf'" curves.gp
load ARG0[1:strlen(ARG0) - strlen("curves.gp")] . "common.gp"
if (!exists("x")) x = "x"
if (!exists("y")) y = "y"
if (!exists("series")) series = ""
if (!exists("series_unit")) series_unit = ""
if (!exists("style")) style = ""
if (!exists("low")) low = ""
if (!exists("high")) high = ""
if (!exists("xlabel")) xlabel = x
if (!exists("ylabel")) ylabel = y
if (!exists("xunit")) xunit = ""
if (!exists("yunit")) yunit = ""
if (!exists("xlog")) xlog = 0
if (!exists("ylog")) ylog = 0
if (!exists("reference")) reference = ""
if (!exists("slope")) slope = 0
if (!exists("level")) level = 0
if (!exists("columns")) columns = 1
if (!exists("ratio")) ratio = columns == 1 ? 0.75 : 0.5
eval paper
set dummy at_x # x and y name columns

# the series in the order of the file, and how each is drawn
array key_of[200]
array style_of[200]
n = 0
key(dummy) = series eq "" ? "" : strcol(series)
style_here(dummy) = style eq "" ? "linespoints" : strcol(style)
find(s) = (at = 0, sum [i = 1:n] (key_of[i] eq s ? (at = i) : 0), at)
enter(s, how) = find(s) > 0 || n == 200 ? 0 : (n = n + 1, key_of[n] = s, style_of[n] = how, 0)
stats data using (enter(key(0), style_here(0)), column(x)) nooutput name "X"
stats data using (column(y)) nooutput name "Y"
name_of(i) = series_unit eq "" ? brief(key_of[i], 40) : \
	real(key_of[i]) > 0 ? human(series_unit, real(key_of[i])) : "all"

sizes = xunit eq "B" && xlog
fx = sizes ? 1 : unit_factor(xunit, X_max)
fy = unit_factor(yunit, Y_max)
set xlabel xlabel . (sizes ? "" : unit_label(xunit, X_max))
set ylabel ylabel . unit_label(yunit, Y_max)
set format x unit_format(xunit, X_max)
set format y unit_format(yunit, Y_max)
# a little more than the points, which lose digits below
if (xlog) { set logscale x xlog; set xrange [0.9999 * X_min * fx:1.0001 * X_max * fx] }
# a few of many powers of two
doublings = xlog == 2 || sizes ? log(X_max / X_min) / log(2) : 0
if (doublings > 6 && !sizes) { set xtics fx * X_min, 2 ** ceil(doublings / (xunit eq "" ? 7 : 5)) }
if (xlog == 2 && xunit eq "" && doublings <= 6 && doublings != floor(doublings)) { \
	set xtics add (gprintf(unit_format(xunit, X_max), X_max) fx * X_max) }
if (sizes) { eval size_tics(X_min, X_max, doublings > 5 ? ceil(doublings / 5) : 1) }
set rmargin xunit eq "" ? 3 : 5
if (ylog) { set logscale y ylog }
if (ylog == 10 && Y_min > 0) { eval log_tics(unit_format(yunit, Y_max), fy * Y_min, fy * Y_max) }
if (!ylog && Y_min >= 0 && Y_max > 0 && !exists("yfrom")) { set yrange [0:*] }

# one block of x, y, low, high for each; points belong to the curve before them
# and take its colour
array hue[200]
do for [i = 1:n] {
	hue[i] = i == 1 ? 1 : hue[i - 1] + (style_of[i] ne "points")
	eval sprintf("set table $curve%d separator comma", i)
	plot data using (fx * column(x)):(fy * column(y)):(low eq "" ? 0 : fy * column(low)): \
		(high eq "" ? 0 : fy * column(high)) with table if (key(0) eq key_of[i])
	unset table
}
unset datafile columnheaders
longest = strlen(reference)
do for [i = 1:n] { longest = strlen(name_of(i)) > longest ? strlen(name_of(i)) : longest }
eval key_width(longest)
eval titles(n > 1 || reference ne "")
block(i) = sprintf("$curve%d", int(i))
paint(i) = rgb(nth(colours, hue[int(i)]))
# a part is left out where it has nothing: gnuplot does not take it then
draw = ""
part(text) = draw . (draw eq "" ? "plot " : ", ") . text
all = ""
lines = ""
linespoints = ""
points = ""
do for [i = 1:n] {
	all = all . " " . i
	if (style_of[i] eq "points") { points = points . " " . i } else { \
	if (style_of[i] eq "lines") { lines = lines . " " . i } else { \
	linespoints = linespoints . " " . i } }
}
if (low ne "" && high ne "") {
	draw = part('for [i in all] block(i) using 1:3:4 with filledcurves fs transparent solid 0.15 \
		noborder fc rgb paint(i) notitle')
}
if (lines ne "") {
	draw = part('for [i in lines] block(i) using 1:2 smooth unique with lines lw 1.2 \
		lc rgb paint(i) dt hue[int(i)] title name_of(int(i))')
}
if (linespoints ne "") {
	draw = part('for [i in linespoints] block(i) using 1:2 smooth unique with linespoints lw 1.2 ps 0.7 \
		pt int(nth(markers, hue[int(i)])) lc rgb paint(i) dt hue[int(i)] \
		title n > 1 ? name_of(int(i)) : reference ne "" ? ylabel : ""')
}
if (points ne "") {
	draw = part('for [i in points] block(i) using 1:2 with points lw 1.2 ps 1 \
		pt int(nth(open_markers, hue[int(i)])) lc rgb paint(i) title name_of(int(i))')
}
if (reference ne "") {
	draw = part('fy * (slope * at_x / fx + level) with lines lw 0.8 lc rgb faint dt "." title reference')
}
eval draw
