# SPDX-License-Identifier: BSD-3-Clause
# One iteration as a Gantt chart, of the CSV that gf-plan and gf-sim write for
# --plot FILE.csv: row, kind, name, tensors, bytes, start_s, end_s.
#   gnuplot -e "data='iteration.csv'; out='iteration.pdf'" gantt.gp
load ARG0[1:strlen(ARG0) - strlen("gantt.gp")] . "common.gp"
if (!exists("columns")) columns = 2

# rows in the order of the file, from the top; marks are lines across them
kinds = "forward backward waiting update message simultaneous reduce-scatter all-gather step exchange"
array row[200]
n = 0
M = 0
array found[20] # those that the file has
word_at(list, s) = (at = 0, sum [i = 1:words(list)] (word(list, i) eq s ? (at = i) : 0), at)
kind(dummy) = word_at(kinds, strcol("kind"))
is_mark(dummy) = strcol("kind") eq "mark"
find(s) = (at = 0, sum [i = 1:n] (row[i] eq s ? (at = i) : 0), at)
enter(s) = is_mark(0) || find(s) > 0 || n == 200 ? 0 : (n = n + 1, row[n] = s, 0)
do for [k = 1:words(kinds)] { found[k] = 0 }
meet(k) = k == 0 ? 0 : (found[k] = 1, 0)
stats data using (enter(strcol("row")), M = M + is_mark(0), meet(kind(0))) nooutput name "R"
present = ""
do for [k = 1:words(kinds)] { if (found[k]) { present = present . " " . word(kinds, k) } }
stats data using (column("end_s")) nooutput name "T"
height = 1.45 + 0.27 * n # inches
if (!exists("ratio")) ratio = height / (columns == 1 ? 3.3 : 7.0)
eval paper

colour_of = "#56b4e9 #0072b2 #d9d9d9 #4d4d4d #e69f00 #d55e00 #cc79a7 #009e73 #56b4e9 #e69f00"
white_on = "0 1 0 1 0 1 0 1 0 0"
f = unit_factor("s", T_max)
xlimit = f * T_max * 1.001
set xrange [0:xlimit]
set xlabel "time" . unit_label("s", T_max)
set yrange [n + 0.6:-0.3]
unset ytics
unset grid
set border 1
set ytics scale 0 ()
do for [i = 1:n] { set ytics add (tic(brief(row[i], 14)) i) }


# What fits into a bar, 0.062 inches a letter: all, the name, the tensors' numbers.
# Times stand for the size of what has none.
start(dummy) = column("start_s")
end(dummy) = column("end_s")
room(dummy) = 0.86 * width_in * (end(0) - start(0)) / T_max / 0.062
size_of(dummy) = strcol("bytes") eq "" ? human("s", end(0) - start(0)) : human("B", column("bytes"))
tensors(dummy) = strcol("tensors") eq "" ? "" : (strstrt(strcol("tensors"), "-") ? "tensors " : "tensor ") . strcol("tensors")
whole(dummy) = strcol("name") . " (" . size_of(0) . ")"
fit(a, b, c, most) = strlen(a) < most ? a : strlen(b) < most ? b : c ne "" && strlen(c) < most ? c : ""
text(dummy) = fit(whole(0), strcol("name"), tensors(0), room(0))


eval key_width(14)
eval titles(1)
if_kind(k, v) = kind(0) == k ? v : NaN
if_bar(v) = is_mark(0) ? NaN : v
if_mark(v) = is_mark(0) ? v : NaN
ink_on(k) = word(white_on, k) eq "1" ? 0xffffff : 0x1a1a1a
# marks are few: each label has a line of its own, left of its mark where there
# is room; their lines are drawn first, for a bar to hide them
marks = 0
said(dummy) = strcol("name") . " " . human("s", start(0))
left(dummy) = 0.86 * width_in * start(0) / T_max > 0.06 * strlen(said(0))
level(i) = 0.35 - 0.42 * (i - 1)
plot data using (if_mark(f * start(0))):(marks = marks + is_mark(0), level(marks)):(0):(n + 0.5 - level(marks)) \
		with vectors nohead lw 0.8 lc rgb ink dt "-" notitle, \
	for [k = 1:words(present)] data using \
		(if_kind(word_at(kinds, word(present, k)), f * 0.5 * (start(0) + end(0)))):(find(strcol("row"))): \
		(f * start(0)):(f * end(0)):(find(strcol("row")) - 0.38):(find(strcol("row")) + 0.38) \
		with boxxyerror fs solid border rgb "white" fc rgb rgb(word(colour_of, word_at(kinds, word(present, k)))) \
		lw 0.4 title word(present, k), \
	data using (if_bar(f * 0.5 * (start(0) + end(0)))):(find(strcol("row"))):(text(0)): \
		(kind(0) > 0 ? ink_on(kind(0)) : 0) with labels textcolor rgb variable notitle, \
	data using (if_mark(left(0) ? f * start(0) : NaN)):(marks = marks + is_mark(0), level(marks - M)): \
		(said(0) . " ") with labels right notitle, \
	data using (if_mark(left(0) ? NaN : f * start(0))):(marks = marks + is_mark(0), level(marks - 2 * M)): \
		(" " . said(0)) with labels left notitle
