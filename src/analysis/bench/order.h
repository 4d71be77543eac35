/* Order statistics of known values (no NaN). */
#pragma once

#include <stddef.h>

void order_sort(double *values, size_t n);
double order_median(const double *sorted, size_t n);         // NaN: no values
double order_select(double *values, size_t n, size_t which); // the value of rank `which`, from 0; reorders the values
