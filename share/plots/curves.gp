# SPDX-License-Identifier: BSD-3-Clause
# Curves of a CSV file with a heading: README says which variables there are.
#   gf-sim plan.json --ranks 2,4,8 --table=csv > s.csv
#   gnuplot -e "data='s.csv'; x='ranks'; y='speedup'; out='s.pdf'" curves.gp
folder = ARG0[1:strlen(ARG0) - strlen("curves.gp")]
if (!exists("columns")) columns = 1
load folder . "common.gp"
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
if (!exists("band")) band = "interval"
if (!exists("dense")) dense = ""
if (!exists("series_title")) series_title = ""
set dummy at_x # x and y name columns

# the series in the order of the file, how each is drawn, and the points' places on x
array key_of[200]
array style_of[200]
array spot[24]
n = 0
spots = 0
key(dummy) = series eq "" ? "" : strcol(series)
style_here(dummy) = style eq "" ? "linespoints" : strcol(style)
find(s) = (at = 0, sum [i = 1:n] (key_of[i] eq s ? (at = i) : 0), at)
enter(s, how) = find(s) > 0 || n == 200 ? 0 : (n = n + 1, key_of[n] = s, style_of[n] = how, 0)
spot_of(v) = (at = 0, sum [i = 1:spots] (spot[i] == v ? (at = i) : 0), at)
meet(v) = spots < 0 || spot_of(v) > 0 ? 0 : spots == 24 ? (spots = -1) : (spots = spots + 1, spot[spots] = v, 0)
stats data using (enter(key(0), style_here(0)), meet(column(x)), column(x)) nooutput name "X"
stats data using (column(y)) nooutput name "Y"
name_of(i) = series_unit eq "" ? key_of[i] : real(key_of[i]) > 0 ? human(series_unit, real(key_of[i])) : "all"

next(v) = (n_v = -1, sum [i = 1:spots] (spot[i] > v && (n_v < 0 || spot[i] < n_v) ? (n_v = spot[i]) : 0), n_v)

# Where curves cross that of `dense` between two points, as logarithmic axes have it.
array D_y[24]
array E_y[24]
circles = ""
array circle_text[24]
crossings = 0
if (dense ne "" && spots > 1) {
	do for [k = 1:spots] { D_y[k] = 0 }
	stats data using (key(0) eq dense ? (D_y[spot_of(column(x))] = column(y)) : 0) nooutput
	do for [i = 1:n] {
		do for [k = 1:spots] { E_y[k] = 0 }
		stats data using (key(0) eq key_of[i] ? (E_y[spot_of(column(x))] = column(y)) : 0) nooutput
		v = X_min
		while (next(v) > 0) {
			w = next(v)
			a = spot_of(v)
			b = spot_of(w)
			missing = D_y[a] * D_y[b] * E_y[a] * E_y[b] == 0
			before = missing ? 0 : log(E_y[a] / D_y[a])
			after = missing ? 0 : log(E_y[b] / D_y[b])
			if (before * after < 0) {
				part = before / (before - after)
				circles = circles . sprintf(" %.9e %.9e", v * (w / v) ** part, E_y[a] * (E_y[b] / E_y[a]) ** part)
				crossings = crossings < 24 ? crossings + 1 : 24
				circle_text[crossings] = sprintf("%s is as fast: %s at %s", dense, key_of[i], \
					human(xunit, v * (w / v) ** part))
			}
			v = w
		}
	}
}

# Points belong to the curve before them and look like it.
array hue[200]
do for [i = 1:n] {
	hue[i] = i == 1 ? 1 : hue[i - 1] + (style_of[i] ne "points")
	if (style_of[i] ne "points") { dummy = claim(series_unit eq "" ? key_of[i] : "") }
}
dummy = series_unit eq "" && n > 1 ? settle(0) : sum [i = 1:C] (C_look[i] = i, 0)
form(i) = (style_of[i] eq "lines" ? look(hue[i]) % 8 : 1) + 100 * int(nth(style_of[i] eq "points" ? open_markers : markers, look(hue[i])))
if (series_title ne "") { dummy = entry(series_title . ":", "text", 0, 0) }
if (n > 1 || reference ne "") {
	do for [i = 1:n] { dummy = entry(n > 1 ? name_of(i) : ylabel, style_of[i] eq "points" ? "point" : \
		style_of[i] eq "lines" ? "line" : "mark", paint(hue[i]), form(i)) }
}
if (reference ne "") { dummy = entry(reference, "faint", rgb(faint), 0) }
if (low ne "" && high ne "") { dummy = entry(band, "area", rgb(pale), 0) }
do for [k = 1:crossings] { dummy = entry(circle_text[k], "point", rgb(ink), 600) }

plot_in = columns == 1 ? 1.7 : 2.4
load folder . "layout.gp"
sizes = xunit eq "B" && xlog
fx = sizes ? 1 : unit_factor(xunit, X_max)
fy = unit_factor(yunit, Y_max)
set label xlabel . (sizes ? "" : unit_label(xunit, X_max)) at graph 0.5, screen 0.09 / height_in center textcolor rgb ink
set ylabel ylabel . unit_label(yunit, Y_max)
set format x unit_format(xunit, X_max)
set format y unit_format(yunit, Y_max)
# a little more than the points, which lose digits below
if (xlog) { set logscale x xlog; set xrange [0.9999 * X_min * fx:1.0001 * X_max * fx] }

# A logarithmic axis has labels at its points: first that of the last one, then from the left
# those that there is room for.
said(v) = xunit eq "B" ? sprintf("%g %s", v / 1024.0 ** power(v), size_unit(v)) : human(xunit, v)
wide(v) = (em(said(v)) + 0.8) * em_in
place_in(v) = (width_in - (xunit eq "" ? 0.9 : 1.1)) * log(v / X_min) / log(X_max / X_min)
free(v) = v == X_max || place_in(v) + 0.5 * wide(v) < place_in(X_max) - 0.5 * wide(X_max)
if (xlog && spots > 1) {
	set xtics () scale 0.5
	used = -1e300
	v = X_min
	while (v > 0) {
		fits = free(v) && place_in(v) - 0.5 * wide(v) > used
		if (fits) { set xtics add (said(v) fx * v); used = place_in(v) + 0.5 * wide(v) } \
		else { set xtics add ("" fx * v) }
		v = next(v)
	}
}
set rmargin at screen across(width_in - (xlog ? 0.5 * wide(X_max) + 0.05 : 0.25))
if (ylog) { set logscale y ylog }
lowest = reference ne "" && level > 0 && slope == 0 && level < Y_min ? level : Y_min
if (ylog && lowest > 0) { set yrange [0.85 * fy * lowest:1.2 * fy * Y_max] }
if (ylog == 10 && Y_min > 0) { eval log_tics("y", unit_format(yunit, Y_max), fy * lowest, fy * Y_max) }
if (!ylog && Y_min >= 0 && Y_max > 0 && !exists("yfrom")) { set yrange [0:*] }

# one block of x, y, low, high for each
do for [i = 1:n] {
	eval sprintf("set table $curve%d separator comma", i)
	plot data using (fx * column(x)):(fy * column(y)):(low eq "" ? 0 : fy * column(low)): \
		(high eq "" ? 0 : fy * column(high)) with table if (key(0) eq key_of[i])
	unset table
}
unset datafile columnheaders
block(i) = sprintf("$curve%d", int(i))
colour(i) = paint(hue[int(i)])
dash(i) = form(int(i)) % 100
marker(i) = form(int(i)) / 100
# a part is left out where it has nothing: gnuplot does not take it then
draw = ""
add(text) = draw . (draw eq "" ? "plot " : ", ") . text
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
	draw = add('for [i in all] block(i) using 1:3:4 with filledcurves fs transparent solid 0.15 \
		noborder fc rgb colour(i)')
}
if (lines ne "") {
	draw = add('for [i in lines] block(i) using 1:2 smooth unique with lines lw 1.2 \
		lc rgb colour(i) dt dash(i)')
}
if (linespoints ne "") {
	draw = add('for [i in linespoints] block(i) using 1:2 smooth unique with linespoints lw 1.2 ps 0.7 \
		pt marker(i) lc rgb colour(i) dt dash(i)')
}
if (points ne "") {
	draw = add('for [i in points] block(i) using 1:2 with points lw 1.2 ps 1 \
		pt marker(i) lc rgb colour(i)')
}
if (reference ne "") {
	draw = add('fy * (slope * at_x / fx + level) with lines lw 0.8 lc rgb faint dt "."')
}
do for [i = 1:words(circles):2] {
	set label "" at fx * word(circles, i), fy * word(circles, i + 1) point pt 6 ps 1.2 lw 1.5 lc rgb ink front
}
eval draw
