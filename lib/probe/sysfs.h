/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_SYSFS_H
#define GF_PROBE_SYSFS_H

#include <stddef.h>

/*
 * Small reads below a sysfs tree, the running kernel's or a recorded one.
 * Attributes come and go with devices and drivers, so every read may fail and
 * callers treat that as "unknown".
 */

/* The first line of a file, without its newline: 0 or a negative errno (the
 * kernel answers -EINVAL for the speed of an interface that is down). */
int gf_sysfs_line(char *out, size_t capacity, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The first line of a file as a number: 0 or a negative errno, -EINVAL if it is
 * none. */
int gf_sysfs_number(double *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Whether such a path exists. */
int gf_sysfs_has(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Names in a folder in byte order, without those that begin with a dot; 0 and
 * no names if it cannot be read. Free with gf_sysfs_free_names. */
size_t gf_sysfs_list(char ***names, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void gf_sysfs_free_names(char **names, size_t count);

#define GF_PCI_TEXT 16 /* "0000:65:00.0" and the NUL */

/* The PCI function that a device link leads to ("<class>/<name>/device"),
 * through bus layers such as virtio; -ENOENT if there is none. *numa is -1
 * where unknown. */
int gf_sysfs_pci(char pci[GF_PCI_TEXT], int *numa, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
