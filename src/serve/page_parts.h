/* The parts of the live page. */
#pragma once

#include "serve/view.h"

void page_heading(const struct view *view, struct buf *out); // whose figures, of when, and what is wrong with them
void page_tiles(const struct view *view, struct buf *out);   // the headline figures
void page_ledger(const struct view *view, struct buf *out);  // whose power it is, as a bar
void page_domains(const struct view *view, struct buf *out);
void page_processes(const struct view *view, struct buf *out);
void page_about(const struct view *view, struct buf *out); // what an estimate is, what looking costs
