/* Figures in few columns. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FIGURE_SIZE = 32 };
struct figure {
	char text[FIGURE_SIZE];
};

// Three digits and no unit: "0.031", "1.23", "62.3", "142", "1421"; "n/a".
struct figure figure_number(double value);
struct figure figure_in_column(double value); // one below another: "0.03", "1.23", "62.31", "142.1", "1421"; 0 is "0"
struct figure figure_bytes(double bytes);     // "812K", "12.3M", "1.21G": decimal
struct figure figure_memory(double bytes);    // with a unit: "1.21 GB"
struct figure figure_count(int64_t value);
struct figure figure_span(double seconds);    // "8.31s", "2:05", "1:02:05", "3d04h"
struct figure figure_power(double power_w);   // with a unit, as reports write it
struct figure figure_energy(double energy_j); // likewise
