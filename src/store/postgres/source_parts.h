// What the files of source.h share. Between room-mates.
#pragma once

#include "store/postgres/source.h"

int source_read_clocks(struct source *source); // SQLite's result code
void source_begin_levels(struct source *source, int64_t mark); // rows behind the mark come next, of one table
enum pg_level source_level(struct source *source, enum layout_table table, int64_t device, int64_t t_ns, bool has_raw);
