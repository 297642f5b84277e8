# SPDX-License-Identifier: BSD-3-Clause
# A table of a trace by kernel_trace.so: where the time of a step
# goes, over the last ten steps. A step begins with a kernel that runs once in it.
#	sort -n TRACE | awk -v marker=REGEX -v most=30 -f kernel_table.awk
# most: rows; 0: all. Without a marker, everything counts as one step.
BEGIN { FS = "\t" }
NF == 5 {
	n++
	from[n] = $1 / 1e6
	to[n] = $2 / 1e6
	name[n] = short($5)
	if (marker != "" && $5 ~ marker)
		count[$5]++
	full[n] = $5
}
function short(s) {
	gsub(/\(anonymous namespace\)::/, "", s)
	sub(/^void /, "", s)
	sub(/\(.*/, "", s)
	return substr(s, 1, 80)
}
END {
	if (!n) {
		print "no rows"
		exit 1
	}
	for (s in count)
		if (step == "" || count[s] < count[step])
			step = s
	steps = 0
	for (i = 1; i <= n && step != ""; i++)
		if (full[i] == step)
			at[++steps] = i
	first = 1
	last = n
	of = 1
	if (steps > 2) {
		of = steps - 2 < 10 ? steps - 2 : 10
		first = at[steps - of]
		last = at[steps] - 1
	}
	for (i = first; i <= last; i++) {
		time[name[i]] += to[i] - from[i]
		runs[name[i]]++
		begin = from[i] > end ? from[i] : end
		if (to[i] > begin)
			busy += to[i] - begin
		if (to[i] > end)
			end = to[i]
	}
	# the first begin of the next step closes the last one
	period = (steps > 2 ? from[last + 1] : end) - from[first]
	printf "| %.3f ms a step, the GPU busy for %.3f ms | launches | ms |\n|---|---|---|\n", period / of, busy / of
	rows = 0
	while (1) {
		best = ""
		for (s in time)
			if (best == "" || time[s] > time[best] || (time[s] == time[best] && s < best))
				best = s
		if (best == "" || (most && rows == most))
			break
		printf "| `%s` | %.1f | %.3f |\n", best, runs[best] / of, time[best] / of
		delete time[best]
		rows++
	}
}
