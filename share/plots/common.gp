# SPDX-License-Identifier: BSD-3-Clause
# What the scripts share: see README. A script sets `columns`, loads this, fills the legend,
# and then loads layout.gp, with `plot_in` the height of what is within the axes. (gnuplot's
# stats, under a name X, forgets all variables X_...: C, F and L are taken.)

set encoding utf8
set datafile separator comma
set datafile columnheaders
set datafile missing NaN
set datafile commentschars ""
if (!exists("out")) out = "svg"
if (!exists("title")) title = ""
if (!exists("subtitle")) subtitle = ""

# The widths of a paper's columns, and text of 8 points.
width_in = columns == 1 ? 3.3 : 7.0
em_in = 8 / 72.0

# How wide a text is at most, in ems. The classes are those of DejaVu Sans, the widest
# of the fonts that stand in for Helvetica.
letter(c) = strstrt("ijlIJ ,.'/:;|fr()[]t-!\\", c) ? 0.41 : strstrt("mMW@%…", c) ? 1 : \
	strstrt("ABCDEFGHKNOPQRSTUVXYZw#+<=>^~×&", c) ? 0.84 : 0.64
em(text) = sum [e_i = 1:strlen(text)] letter(text[e_i:e_i])
# as much of a text as there is room for
fitting(text, ems) = (f_w = 0, f_n = 0, sum [f_i = 1:strlen(text)] \
	(f_w = f_w + letter(text[f_i:f_i]), f_w <= ems ? (f_n = f_i) : 0), f_n)
brief(text, ems) = em(text) <= ems ? text : text[1:fitting(text, ems - 1)] . "…"
# The lines F_text[1..F] of a text, broken at spaces: at most `most` of so many ems.
array F_text[8]
fold(text, ems, most) = (F = 0, b_w = 0, b_at = 1, b_space = 0, sum [b_i = 1:strlen(text)] \
	((text[b_i:b_i] eq " " ? (b_space = b_i) : 0), b_w = b_w + letter(text[b_i:b_i]), \
	b_w <= ems || F + 1 == most ? 0 : (b_end = b_space > b_at ? b_space : b_i - 1, \
	F = F + 1, F_text[F] = text[b_at:b_end], b_at = b_end + 1, b_w = em(text[b_at:b_i]), 0)), \
	F = F + 1, F_text[F] = brief(text[b_at:*], ems), F)
# the label of a tic is a format
tic(text) = strstrt(text, "%") == 0 ? text : \
	text[1:strstrt(text, "%")] . "%" . tic(text[strstrt(text, "%") + 1:*])

# Okabe and Ito (2008) without yellow, and two more: colour-blind readers tell these apart.
# Marker and dash differ as well, for prints in grey.
colours = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #4d4d4d #882255 #999933"
markers = "7 5 9 11 13 15 3 1"
open_markers = "6 4 8 10 12 14 2 1"
ink = "#1a1a1a"
faint = "#5c5c5c"
pale = "#d9d9d9"
nth(list, i) = word(list, 1 + (i - 1) % words(list))
rgb(hex) = int("0x" . hex[2:7])

# What a series looks like is found from its name, of "a.topk" from "topk", so that one name
# looks alike in all pictures. Of names that fall together in a picture, the later one by its
# number gives way. claim(name) for all, then settle, then look(i) of the i-th: from 1 on.
array C_name[200]
array C_number[200]
array C_look[200]
C = 0
last_part(name) = strstrt(name, ".") ? last_part(name[strstrt(name, ".") + 1:*]) : name
number(name) = (h_v = 1861, sum [h_i = 1:strlen(name)] (h_v = (h_v * 76 + \
	strstrt("0123456789abcdefghijklmnopqrstuvwxyz-_ ABCDEFGHIJKLMNOPQRSTUVWXYZ", name[h_i:h_i])) % 1000003, 0), h_v)
claim(name) = C >= 200 ? 0 : (C = C + 1, C_name[C] = name, C_number[C] = number(last_part(name)) + C * 1e-6, C_look[C] = 0, 0)
taken(look) = sum [t_i = 1:C] (C_look[t_i] == look)
place(from, look) = (p_at = 0, sum [p_i = 0:7] (p_at == 0 && !taken(look + (from + p_i) % 8) ? (p_at = look + (from + p_i) % 8) : 0), \
	p_at > 0 ? p_at : place(from, look + 8))
first_left(dummy) = (s_at = 0, sum [s_i = 1:C] (C_look[s_i] == 0 && (s_at == 0 || C_number[s_i] < C_number[s_at]) ? (s_at = s_i) : 0), s_at)
settle(dummy) = sum [s_k = 1:C] (s_now = first_left(0), C_look[s_now] = place(int(C_number[s_now]) % 8, 1), 0)
look(i) = C_look[int(i)]
paint(i) = rgb(nth(colours, look(i)))

# A legend's entries, in the order of calls: a "box", "hatch", "line", "mark" (a line with a
# marker), "point", "tick" (a line across a bar), or "text" alone.
array L_text[60]
array L_kind[60]
array L_rgb[60]
array L_form[60]
array L_row[60]
array L_at[60]
L = 0
entry(text, kind, colour, form) = L >= 60 ? 0 : (L = L + 1, L_text[L] = text, L_kind[L] = kind, \
	L_rgb[L] = colour, L_form[L] = form, 0)

# A unit: "" (a number), "s", "B" (bytes), "b/s" (of bytes per second), "%" (of a
# share). unit_factor turns a value into what the axis shows; times are shown in
# one of s, ms, µs, ns for the whole axis, by their largest, and sizes in one of
# B, KiB, MiB, ... (a logarithmic axis of sizes is in bytes).
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
log_tics(axis, form, low, high) = log10(high / low) > 2.5 ? "" : (list = "", \
	sum [e = floor(log10(low)):ceil(log10(high))] sum [k = 1:3] \
	(list = list . sprintf("%s\"%s\" %g", list eq "" ? "" : ", ", \
	gprintf(form, word("1 2 5", k) * 10.0 ** e), word("1 2 5", k) * 10.0 ** e), 0), \
	"set " . axis . "tics (" . list . ")")
# three digits, zeros kept
digits(v) = v >= 99.95 ? sprintf("%.0f", v) : v >= 9.995 ? sprintf("%.1f", v) : sprintf("%.2f", v)
human(unit, v) = unit eq "s" ? digits(v * unit_factor("s", v)) . " " . time_unit(v) : \
	unit eq "B" ? sprintf(v < 1024 ? "%.0f %s" : "%.1f %s", v / 1024.0 ** power(v), size_unit(v)) : \
	unit eq "b/s" ? (v < 125 ? gprintf("%.3g b/s", 8 * v) : v < 1.25e5 ? gprintf("%.3g kb/s", 8e-3 * v) : v < 1.25e8 ? gprintf("%.3g Mb/s", 8e-6 * v) : \
	gprintf("%.4g Gb/s", 8e-9 * v)) : unit eq "%" ? gprintf("%.3g %%", 100 * v) : gprintf("%g", v)
