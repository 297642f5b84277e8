# SPDX-License-Identifier: BSD-3-Clause
# The terminal, the titles and the legend, of what common.gp's variables say. From the top:
# titles, legend, plot_in inches within the axes, and bottom_in below them; `ratio` has the
# whole height if the caller gave it.
room = (width_in - 0.16) / em_in # ems of a line

array T_text[4]
T = 0
do for [text in "title subtitle"] { if (value(text) ne "") {
	dummy = fold(value(text), room, 2)
	do for [i = 1:F] { T_text[T + i] = F_text[i] }
	T = T + F
} }

array R_wide[60]
rows = L > 0
L_from = 0
do for [i = 1:L] {
	swatch = L_kind[i] eq "text" ? 0 : 2.5
	L_text[i] = brief(L_text[i], room - swatch)
	L_wide = swatch + em(L_text[i])
	if (L_from > 0 && L_from + L_wide > room) { rows = rows + 1; L_from = 0 }
	L_row[i] = rows
	L_at[i] = L_from
	R_wide[rows] = L_from + L_wide
	L_from = L_from + L_wide + (swatch > 0 ? 1.5 : 0.7)
}

line_in = 0.15
if (!exists("bottom_in")) bottom_in = 0.4
top_in = 0.06 + line_in * T + (rows ? 0.05 + line_in * rows : 0) + 0.09
height_in = exists("ratio") ? ratio * width_in : top_in + plot_in + bottom_in
type = strlen(out) < 3 ? out : out[strlen(out) - 2:*]
# a PNG has 300 dots per inch
if (type eq "svg") {
	set terminal svg noenhanced size 96 * width_in, 96 * height_in \
		font "Helvetica,10.67" linewidth 1.2 background "#ffffff"
} else { if (type eq "pdf") {
	set terminal pdfcairo noenhanced size width_in in, height_in in \
		font "Helvetica,8" fontscale 0.75 linewidth 1.6 pointscale 0.7
} else { if (type eq "png") {
	set terminal pngcairo noenhanced size 300 * width_in, 300 * height_in \
		font "Helvetica,8" fontscale 3.125 linewidth 4.2 pointscale 3.2
} else {
	exit error "want an out that ends in svg, pdf or png, got " . out
} } }
if (strlen(out) > 3) { set output out }
set border 3 lc rgb ink lw 0.6
set tics nomirror out scale 0.5 textcolor rgb ink
set xtics offset 0, 0.2
set grid lt 1 lc rgb "#d4d4d4" lw 0.4
unset key
set tmargin at screen 1 - top_in / height_in
set bmargin at screen bottom_in / height_in

across(in) = in / width_in
down(in) = 1 - in / height_in
do for [i = 1:T] { set label T_text[i] at screen 0.5, down(0.06 + line_in * (i - 0.5)) center textcolor rgb ink }
do for [i = 1:L] {
	L_y = down(0.11 + line_in * (T + L_row[i] - 0.5))
	L_x = across(0.5 * (width_in - em_in * R_wide[L_row[i]]) + em_in * L_at[i])
	to = across(2 * em_in)
	colour = L_rgb[i]
	dash = int(L_form[i]) % 100
	if (L_kind[i] eq "box") { set object rectangle from screen L_x, L_y - 0.04 / height_in to screen L_x + to, L_y + 0.04 / height_in \
		fs solid border rgb ink fc rgb colour lw 0.5 }
	if (L_kind[i] eq "area") { set object rectangle from screen L_x, L_y - 0.04 / height_in to screen L_x + to, L_y + 0.04 / height_in \
		fs solid noborder fc rgb colour lw 0.5 }
	if (L_kind[i] eq "hatch") { set object rectangle from screen L_x, L_y - 0.04 / height_in to screen L_x + to, L_y + 0.04 / height_in \
		fs pattern 4 border rgb ink fc rgb colour lw 0.5 }
	if (L_kind[i] eq "line" || L_kind[i] eq "mark") { set arrow from screen L_x, L_y to screen L_x + to, L_y \
		nohead lw 1.2 lc rgb colour dt dash }
	if (L_kind[i] eq "faint") { set arrow from screen L_x, L_y to screen L_x + to, L_y nohead lw 0.8 lc rgb colour dt "." }
	if (L_kind[i] eq "mark" || L_kind[i] eq "point") { set label "" at screen L_x + 0.5 * to, L_y \
		point pt int(L_form[i] / 100) ps 0.8 lc rgb colour }
	if (L_kind[i] eq "tick") { set arrow from screen L_x + 0.5 * to, L_y - 0.055 / height_in to screen L_x + 0.5 * to, L_y + 0.055 / height_in \
		nohead lw 1.6 lc rgb colour }
	set label L_text[i] at screen L_x + (L_kind[i] eq "text" ? 0 : across(2.5 * em_in)), L_y left textcolor rgb ink
}
