# SPDX-License-Identifier: BSD-3-Clause
# A topology as boxes, of the CSV that gf-topo writes for --plot FILE.csv: kind (level, from the
# outermost on, or host), size (boxes of the level), ranks (in one of them), name, text.
#   gnuplot -e "data='topology.csv'; out='topology.pdf'" topology.gp
folder = ARG0[1:strlen(ARG0) - strlen("topology.gp")]
if (!exists("columns")) columns = 2
load folder . "common.gp"

array size[40]
array ranks[40]
array name[40]
array text[40]
array host[60]
n = 0
H = 0
# cells have no commas
commas(t) = (c_t = "", sum [c_i = 1:strlen(t)] (c_t = c_t . (t[c_i:c_i] eq ";" ? "," : t[c_i:c_i]), 0), c_t)
is_host(dummy) = strcol("kind") eq "host"
level(dummy) = is_host(0) || n == 40 ? 0 : (n = n + 1, size[n] = column("size"), ranks[n] = column("ranks"), \
	name[n] = strcol("name"), text[n] = commas(strcol("text")), 0)
edge_in = 0.12
wide_in = width_in - 2 * edge_in
line(dummy) = !is_host(0) ? 0 : (fold(commas(strcol("text")), (wide_in - 0.16) / em_in, 4), \
	sum [l_i = 1:F] (H = H + 1, H <= 40 ? (host[H] = (l_i > 1 ? "    " : "") . F_text[l_i]) : 0, 0))
stats data using (level(0), line(0)) nooutput
lines = H > 40 ? 41 : H
if (H > 40) { host[41] = sprintf("and %d lines more: gf-topo --table=text", H - 40) }

# Levels of boxes, each above its links; then the hosts.
row_in = 0.24
gap_in = 0.44
line_in = 0.15
first = n < 2 ? 2 : 1 # a host outside a job has no levels
plot_in = (n < 2 ? 0 : row_in * n + gap_in * (n - 1)) + (lines ? 0.22 + line_in * lines : 0)
bottom_in = 0.08
load folder . "layout.gp"
set lmargin at screen 0
set rmargin at screen 1
unset border
unset tics
unset grid
set xrange [0:width_in]
set yrange [plot_in:0]

gap = 0.08
# "ranks 0-7", or "0-7" where there is less room
rank_text(row, i, box) = ranks[row] == 1 || (em(said(row, i)) + 4.5) * em_in > box ? said(row, i) : "ranks " . said(row, i)
said(row, i) = ranks[row] == 1 ? sprintf("rank %d", i) : sprintf("%d-%d", i * ranks[row], (i + 1) * ranks[row] - 1)
do for [row = first:n] {
	top = (row - 1) * (row_in + gap_in)
	widest = em(said(row, size[row] - 1)) * em_in + 0.12
	slots = int((wide_in + gap) / (widest + gap))
	slots = slots < 3 ? 3 : slots
	shown = size[row] < slots ? size[row] : slots
	box = (wide_in + gap) / shown - gap
	if (box > 1) { box = 1 }
	if (row > 1) {
		# from the first box above down to a line, which the boxes hang on
		set arrow from before, top - gap_in to before, top - 0.08 nohead lw 1.2 lc rgb faint
		set arrow from (before < edge_in + 0.5 * box ? before : edge_in + 0.5 * box), top - 0.08 to edge_in + (shown - 1) * (box + gap) + 0.5 * box, top - 0.08 nohead lw 1.2 lc rgb faint
		set label brief(name[row], (width_in - before - 0.15) / em_in) at before + 0.07, top - gap_in + 0.1 left textcolor rgb ink
		set label brief(text[row], (width_in - before - 0.15) / em_in) at before + 0.07, top - gap_in + 0.25 left textcolor rgb faint
	}
	do for [i = 1:shown] {
		at = edge_in + (i - 1) * (box + gap)
		folded = shown < size[row] && i == shown - 1
		which = i == shown ? size[row] - 1 : i - 1
		if (row > 1) { set arrow from at + 0.5 * box, top - 0.08 to at + 0.5 * box, top nohead lw 1.2 lc rgb faint }
		if (!folded) { set object rectangle from at, top to at + box, top + row_in fs solid border rgb ink \
			fc rgb (row < n ? "#cfe5f5" : "#fbe5b6") lw 0.6 }
		set label folded ? "…" : row == 1 ? sprintf("%d ranks", ranks[1]) : rank_text(row, which, box) \
			at at + 0.5 * box, top + 0.5 * row_in center textcolor rgb ink
	}
	before = edge_in + 0.5 * box
}
from = plot_in - line_in * lines - 0.1
if (lines) { set object rectangle from edge_in, from to width_in - edge_in, plot_in fs empty border rgb faint lw 0.6 }
do for [i = 1:lines] {
	set label brief(host[i], (wide_in - 0.15) / em_in) at edge_in + 0.08, from + 0.05 + line_in * (i - 0.5) left textcolor rgb ink
}
plot NaN
