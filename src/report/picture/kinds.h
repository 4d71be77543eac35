/* The kinds of pictures that are no charts, a file each. Heights come first, as drawing needs them. */
#pragma once

#include "report/picture/draw.h"

bool ledger_has(const struct charts *charts);
double ledger_height(const struct picture *p);
void ledger_draw(struct picture *p);
void ledger_words(const struct charts *charts, struct buf *out);

bool flame_has(const struct charts *charts);
double flame_height(const struct picture *p);
void flame_draw(struct picture *p);
void flame_words(const struct charts *charts, struct buf *out);

bool blocks_has(const struct charts *charts);
double blocks_height(const struct picture *p);
void blocks_draw(struct picture *p);
void blocks_words(const struct charts *charts, struct buf *out);

bool spans_has(const struct charts *charts);
double spans_height(const struct picture *p);
void spans_draw(struct picture *p);
void spans_words(const struct charts *charts, struct buf *out);

void picture_heading(struct picture *p, const char *title); // bold, at the top
