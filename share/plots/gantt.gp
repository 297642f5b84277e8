# SPDX-License-Identifier: BSD-3-Clause
# One step as a Gantt chart, of the CSV that gf-plan and gf-sim write for
# --plot FILE.csv: row, kind, name, tensors, bytes, start_s, end_s.
#   gnuplot -e "data='step.csv'; out='step.pdf'" gantt.gp
folder = ARG0[1:strlen(ARG0) - strlen("gantt.gp")]
if (!exists("columns")) columns = 2
load folder . "common.gp"

# rows in the order of the file, from the top; marks are lines across them
kinds = "forward backward waiting update message simultaneous reduce-scatter all-gather step exchange"
colour_of = "#56b4e9 #0072b2 #d9d9d9 #4d4d4d #e69f00 #d55e00 #cc79a7 #009e73 #56b4e9 #e69f00"
white_on = "0 1 0 1 0 1 0 1 0 0"
array row[200]
n = 0
M = 0
word_at(list, s) = (at = 0, sum [i = 1:words(list)] (word(list, i) eq s ? (at = i) : 0), at)
kind(dummy) = word_at(kinds, strcol("kind"))
is_mark(dummy) = strcol("kind") eq "mark"
find(s) = (at = 0, sum [i = 1:n] (row[i] eq s ? (at = i) : 0), at)
meet_row(s) = is_mark(0) || find(s) > 0 || n == 200 ? 0 : (n = n + 1, row[n] = s, 0)
start(dummy) = column("start_s")
end(dummy) = column("end_s")
takes(dummy) = end(0) - start(0)
stats data using (meet_row(strcol("row")), M = M + is_mark(0)) nooutput name "R"
stats data using (end(0)) nooutput name "T"
f = unit_factor("s", T_max)
widest = 0
do for [i = 1:n] { widest = em(row[i]) > widest ? em(row[i]) : widest }
left_in = 0.15 + em_in * widest
axis_in = width_in - left_in - 0.25
inches(s) = axis_in * s / T_max

# The kinds that can be seen: a bar of a pixel cannot. Waiting has its sum beside its name.
array seen[20]
array found[20]
do for [k = 1:words(kinds)] { seen[k] = found[k] = 0 }
waits_s = 0
waiting = word_at(kinds, "waiting")
meet(k) = k == 0 ? 0 : (found[k] = 1, seen[k] = seen[k] || inches(takes(0)) > 0.015, k == waiting ? (waits_s = waits_s + takes(0)) : 0, 0)
stats data using (meet(kind(0))) nooutput
present = ""
do for [k = 1:words(kinds)] { if (found[k]) { present = present . " " . k } }
do for [k = 1:words(kinds)] { if (seen[k] || k == waiting && waits_s > 0) {
	dummy = entry(word(kinds, k) . (k == waiting ? " (" . human("s", waits_s) . ")" : ""), "box", rgb(word(colour_of, k)), 0)
} }

# What a bar says: all bars of compute in one form, and all messages in one, which is the fullest
# of those that do not leave a quarter more of them without a word.
is_message(dummy) = strcol("tensors") ne "" || strcol("bytes") ne ""
size_of(dummy) = strcol("bytes") eq "" ? human("s", takes(0)) : human("B", column("bytes"))
tensors(dummy) = strcol("tensors") eq "" ? "" : (strstrt(strcol("tensors"), "-") ? "tensors " : "tensor ") . strcol("tensors")
said(i) = i == 1 ? strcol("name") . " (" . size_of(0) . ")" : i == 2 ? strcol("name") : i == 3 ? tensors(0) : size_of(0)
steps(dummy) = strcol("kind") eq "step"
fits(i) = !is_mark(0) && said(i) ne "" && (em(said(i)) + 0.6) * em_in < inches(takes(0))
array fitting_of[8]
do for [i = 1:8] { fitting_of[i] = 0 }
count(i, at) = (fitting_of[at] = fitting_of[at] + fits(i), 0)
stats data using (steps(0) ? 0 : sum [k = 1:4] count(k, k + 4 * is_message(0))) nooutput
most_of(from) = (m = 0, sum [k = from + 1:from + 4] (fitting_of[k] > m ? (m = fitting_of[k]) : 0), m)
first_of(from) = (at = 4, sum [k = 1:4] (fitting_of[from + 5 - k] >= 0.75 * most_of(from) ? (at = 5 - k) : 0), at)
form_of_compute = first_of(0)
form_of_messages = first_of(4)
form(dummy) = steps(0) ? 2 : is_message(0) ? form_of_messages : form_of_compute
text(dummy) = fits(form(0)) ? said(form(0)) : ""

# Waiting that has no room for its time has it below, where the one before leaves room.
beside_to = -1e300
beside(dummy) = kind(0) == waiting && text(0) eq "" && inches(takes(0)) > 0.004
beside_text(dummy) = human("s", takes(0))
half(dummy) = 0.5 * (em(beside_text(0)) + 0.6) * em_in
middle(dummy) = inches(0.5 * (start(0) + end(0)))
within(v, low, high) = v < low ? low : v > high ? high : v
beside_at(dummy) = within(middle(0), half(0), axis_in - half(0))
any_beside = 0
stats data using (any_beside = any_beside || beside(0)) nooutput
line_of(r) = r + (r > 1 ? 0.55 * any_beside : 0)

row_in = 0.27
mark_in = 0.16
plot_in = row_in * (line_of(n) + 0.1) + mark_in * M
load folder . "layout.gp"
set lmargin at screen across(left_in)
set rmargin at screen across(left_in + axis_in)
set xrange [0:f * T_max]
set format x "%g"
set label "time" . unit_label("s", T_max) at graph 0.5, screen 0.09 / height_in center textcolor rgb ink
top = 0.45 - mark_in / row_in * M
set yrange [line_of(n) + 0.55:top]
unset ytics
unset grid
set border 1
set ytics scale 0 ()
do for [i = 1:n] { set ytics add (tic(row[i]) line_of(i)) }

# Each mark has a line of its own for its label, the first the lowest: left of it, or as near to
# that as can be.
marks = 0
mark_text(dummy) = strcol("name") . " " . human("s", start(0))
mark_half(dummy) = 0.5 * em(mark_text(0)) * em_in
mark_at(dummy) = within(inches(start(0)) - mark_half(0) - 0.04, mark_half(0) + 0.06 - left_in, axis_in)
level(i) = 0.45 - mark_in / row_in * (i - 0.5)
foot(i) = level(i) + 0.45 * mark_in / row_in
shown(v) = f * T_max * v / axis_in
where(dummy) = line_of(find(strcol("row")))
plot data using (is_mark(0) ? f * start(0) : NaN):(marks = marks + is_mark(0), foot(marks)):(0):(line_of(n) + 0.5 - foot(marks)) \
		with vectors nohead lw 0.8 lc rgb ink dt "-", \
	for [k in present] data using (kind(0) == k ? f * 0.5 * (start(0) + end(0)) : NaN):(where(0)): \
		(f * start(0)):(f * end(0)):(where(0) - 0.38):(where(0) + 0.38) \
		with boxxyerror fs solid border rgb "white" fc rgb rgb(word(colour_of, int(k))) lw 0.4, \
	data using (is_mark(0) ? NaN : f * 0.5 * (start(0) + end(0))):(where(0)):(text(0)): \
		(kind(0) > 0 && word(white_on, kind(0)) eq "1" ? 0xffffff : 0x1a1a1a) with labels textcolor rgb variable, \
	data using (beside(0) && beside_at(0) - half(0) > beside_to ? (beside_to = beside_at(0) + half(0), shown(beside_at(0))) : NaN): \
		(where(0) + 0.72):(beside_text(0)) with labels textcolor rgb ink, \
	data using (is_mark(0) ? shown(mark_at(0)) : NaN):(marks = marks + is_mark(0), level(marks - M)):(mark_text(0)) \
		with labels textcolor rgb ink
