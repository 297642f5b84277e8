# SPDX-License-Identifier: BSD-3-Clause
# What curves.gp, bars.gp and gantt.gp share: see README. A script sets `columns`
# and `ratio` (height by width) where the caller has not, then calls
# `eval paper`.

set encoding utf8
set datafile separator comma
set datafile columnheaders
set datafile missing NaN
set datafile commentschars ""
if (!exists("out")) out = "svg"
if (!exists("title")) title = ""
if (!exists("subtitle")) subtitle = ""

# Okabe and Ito (2008) without yellow: colour-blind readers tell these apart.
# Marker, dash and fill differ as well, for prints in grey; there is a marker more, so
# that the eighth curve differs from the first.
colours = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #4d4d4d"
markers = "7 5 9 11 13 15 3 1"
open_markers = "6 4 8 10 12 14 2 1"
ink = "#1a1a1a"
faint = "#5c5c5c"

nth(list, i) = word(list, 1 + (i - 1) % words(list))
rgb(hex) = int("0x" . hex[2:7])
brief(text, most) = strlen(text) > most ? text[1:most - 1] . "…" : text
# the label of a tic is a format
tic(text) = strstrt(text, "%") == 0 ? text : \
	text[1:strstrt(text, "%")] . "%" . tic(text[strstrt(text, "%") + 1:*])
heading(text) = brief(text, int(width_in * 18))

# A unit: "" (a number), "s", "B" (bytes), "b/s" (of bytes per second), "%" (of a
# share). unit_factor turns a value into what the axis shows; times are shown in
# one of s, ms, µs, ns for the whole axis, by their largest, and sizes in one of
# B, KiB, MiB, ... (a logarithmic axis of sizes has tics of its own: size_tics).
time_unit(most) = most >= 1 ? "s" : most >= 1e-3 ? "ms" : most >= 1e-6 ? "µs" : "ns"
power(v) = v < 1024 ? 0 : int(log(v) / log(1024) + 1e-9)
size_unit(v) = word("B KiB MiB GiB TiB PiB EiB", 1 + power(v))
unit_factor(unit, most) = unit eq "%" ? 100 : unit eq "B" ? 1024.0 ** -power(most) : unit eq "b/s" ? 8 : unit ne "s" ? 1 : \
	most >= 1 ? 1 : most >= 1e-3 ? 1e3 : most >= 1e-6 ? 1e6 : 1e9
unit_label(unit, most) = unit eq "s" ? " (" . time_unit(most) . ")" : \
	unit eq "%" ? " (%)" : unit eq "B" ? " (" . size_unit(most) . ")" : ""
unit_format(unit, most) = unit eq "b/s" ? "%.0s %cb/s" : \
	unit eq "" && most >= 1e5 ? "%.0s %c" : "%g"
# A logarithmic axis of few decades has labels at 1, 2 and 5.
log_tics(form, low, high) = log10(high / low) > 2.5 ? "" : (list = "", \
	sum [e = floor(log10(low)):ceil(log10(high))] sum [k = 1:3] \
	(list = list . sprintf("%s\"%s\" %g", list eq "" ? "" : ", ", \
	gprintf(form, word("1 2 5", k) * 10.0 ** e), word("1 2 5", k) * 10.0 ** e), 0), \
	"set ytics (" . list . ")")
# A logarithmic axis of sizes has labels at powers of two, every so many.
size_tics(low, high, every) = (list = "", \
	sum [e = 0:int((log(high) - log(low)) / log(2) / every + 1e-6)] \
	(v = 2 ** (ceil(log(low) / log(2) - 1e-6) + e * every), \
	list = list . sprintf("%s\"%g %s\" %g", e == 0 ? "" : ", ", v / 1024.0 ** power(v), size_unit(v), v), 0), \
	"set xtics (" . list . ")")
human(unit, v) = unit eq "s" ? \
	gprintf("%.3g ", v * unit_factor("s", v)) . time_unit(v) : \
	unit eq "B" ? sprintf(v < 1024 ? "%.0f %s" : "%.1f %s", v / 1024.0 ** power(v), size_unit(v)) : \
	unit eq "b/s" ? gprintf("%.4g ", 8 * v / 1e9) . "Gb/s" : gprintf("%g", v)

# Widths of a paper's columns; text of 8 points. A PNG has 300 dots per inch.
paper = 'width_in = columns == 1 ? 3.3 : 7.0; height_in = ratio * width_in; \
type = strlen(out) < 3 ? out : out[strlen(out) - 2:*]; \
if (type eq "svg") { set terminal svg noenhanced size 96 * width_in, 96 * height_in \
	font "Helvetica,10.67" linewidth 1.2 background "#ffffff"; \
	set key spacing 0.7; set xlabel offset 0, 0.7 } else { \
if (type eq "pdf") { set terminal pdfcairo noenhanced size width_in in, height_in in \
	font "Helvetica,8" fontscale 0.75 linewidth 1.6 pointscale 0.7 } else { \
if (type eq "png") { set terminal pngcairo noenhanced size 300 * width_in, 300 * height_in \
	font "Helvetica,8" fontscale 3.125 linewidth 4.2 pointscale 3.2 } else { \
exit error "want an out that ends in svg, pdf or png, got " . out } } }; \
if (strlen(out) > 3) { set output out }; \
set border 3 lc rgb ink lw 0.6; \
set tics nomirror out scale 0.5 textcolor rgb ink; \
set xtics offset 0, 0.2; \
set grid lt 1 lc rgb "#d4d4d4" lw 0.4; \
set key tmargin center horizontal Left reverse samplen 2 textcolor rgb ink'
# The title stands above the legend, whose own title keeps the room free: as the
# legend's title it would widen the legend.
line(i) = 1 - (0.02 + (type eq "svg" ? 0.15 : 0.12) * i) / height_in
labels = 'set label 1 heading(title) at screen 0.5, line(0.5) center textcolor rgb ink; \
set label 2 heading(subtitle) at screen 0.5, line(1.5) center textcolor rgb ink; \
set key title subtitle eq "" ? " " : " \n "'
# An SVG reckons with wider letters than it draws: longest is of a legend's names.
key_width(longest) = type eq "svg" ? sprintf("set key width %d", -0.27 * longest) : ""
titles(legend) = title eq "" ? "unset title" : legend ? labels : "set title heading(title)" . \
	(subtitle eq "" ? "" : " . \"\\n\" . heading(subtitle)")
