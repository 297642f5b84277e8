# SPDX-License-Identifier: BSD-3-Clause
# Who sends to whom when, of the CSV that gf-sim --steps writes for --plot FILE.csv: rank, way
# (send, receive, local), peer, by, level, lane, lanes, bytes, start_s, moves_s, end_s.
#   gnuplot -e "data='exchange.csv'; out='exchange.pdf'" exchange.gp
folder = ARG0[1:strlen(ARG0) - strlen("exchange.gp")]
if (!exists("columns")) columns = 2
load folder . "common.gp"

# Ranks in the order of the file, from the top; what carries the steps out, in colours by level.
array rank[100]
array by[20]
n = 0
k = 0
waits = 0
find(r) = (at = 0, sum [i = 1:n] (rank[i] == r ? (at = i) : 0), at)
find_by(s) = (at = 0, sum [i = 1:k] (by[i] eq s ? (at = i) : 0), at)
meet(r, s, l) = (find(r) > 0 || n == 100 ? 0 : (n = n + 1, rank[n] = r, 0), \
	find_by(s) > 0 || k == 20 ? 0 : (k = k + 1, by[k] = s, claim(s), C_number[k] = l + 1e-6 * k, 0), 0)
stats data using (meet(column("rank"), strcol("by"), column("level"))) nooutput
dummy = settle(0)
stats data using (waits = waits || column("moves_s") > column("start_s")) nooutput
stats data using (column("start_s")) nooutput name "A"
stats data using (column("end_s")) nooutput name "T"
f = unit_factor("s", T_max)
hue(i) = by[i] eq "local" ? rgb("#4d4d4d") : paint(i)
if (n <= 16) { dummy = entry("in a bar: the other rank", "text", 0, 0) }
do for [i = 1:k] { dummy = entry(by[i], "box", hue(i), 0) }
if (waits) { dummy = entry("posted, waiting", "box", rgb(pale), 0) }

# Each rank has a half of its row for what it sends, and one for what it receives.
pitch_in = n > 16 ? 0.2 : 0.32
plot_in = pitch_in * n + 0.05
halves = n <= 16
left_in = 0.15 + em_in * em(sprintf("rank %d%s", rank[n], halves ? " to" : ""))
axis_in = width_in - left_in - 0.2
load folder . "layout.gp"
set lmargin at screen across(left_in)
set rmargin at screen across(left_in + axis_in)
set xrange [f * A_min:f * T_max]
set format x "%g"
set label "time" . unit_label("s", T_max) at graph 0.5, screen 0.09 / height_in center textcolor rgb ink
set yrange [n + 0.5 + 0.025 / pitch_in:0.5 - 0.025 / pitch_in]
set border 1
unset grid
set grid x lt 1 lc rgb "#d4d4d4" lw 0.4
set ytics scale 0 ()
do for [i = 1:n] {
	set ytics add (sprintf("rank %d%s", rank[i], halves ? " to" : "") i - (halves ? 0.23 : 0))
	if (halves) { set ytics add ("from" i + 0.23) }
	if (i > 1) { set arrow from graph 0, first i - 0.5 to graph 1, first i - 0.5 nohead lw 0.4 lc rgb "#d4d4d4" back }
}
start(dummy) = f * column("start_s")
moves(dummy) = f * column("moves_s")
end(dummy) = f * column("end_s")
high(dummy) = 0.44 / column("lanes")
middle(dummy) = find(column("rank")) + (strcol("way") eq "send" ? -0.23 : 0.23) - 0.22 + high(0) * (column("lane") - 0.5)
inches(v) = axis_in * v / (f * (T_max - A_min))
fits(dummy) = strcol("peer") ne "" && (em(strcol("peer")) + 0.3) * em_in < inches(end(0) - moves(0)) && high(0) * pitch_in > 0.12
on(c) = 0.3 * (c / 65536) + 0.59 * (c / 256 % 256) + 0.11 * (c % 256) < 130 ? 0xffffff : 0x1a1a1a
plot data using (moves(0) > start(0) ? start(0) : NaN):(middle(0)):(start(0)):(moves(0)): \
	(middle(0) - 0.15 * high(0)):(middle(0) + 0.15 * high(0)) with boxxyerror fs solid noborder fc rgb rgb(pale), \
	for [i = 1:k] data using (find_by(strcol("by")) == i ? moves(0) : NaN):(middle(0)):(moves(0)):(end(0)): \
	(middle(0) - 0.45 * high(0)):(middle(0) + 0.45 * high(0)) with boxxyerror fs solid border rgb "white" fc rgb hue(i) lw 0.4, \
	data using (fits(0) ? 0.5 * (moves(0) + end(0)) : NaN):(middle(0)):(strcol("peer")):(on(hue(find_by(strcol("by"))))) with labels textcolor rgb variable
