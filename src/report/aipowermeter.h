/* A run in the layout of AIPowerMeter's folders (GreenAI-Uppa/AIPowerMeter), for its reader and for programs made for it.
 * docs/exports.md has every key. Texts only: task/ writes the files. */
#pragma once

#include "analysis/energy/timeline.h"
#include "base/buf.h"

struct aipowermeter;

// What the texts are made of; lives in the arena. NULL: -ENOMEM.
struct aipowermeter *aipowermeter_new(const struct run *run, struct arena *arena);

// Whether there is anything to write: a segment that lasted, and a wall clock.
bool aipowermeter_has_rows(const struct aipowermeter *a);
bool aipowermeter_has_results(const struct aipowermeter *a); // the program reported metrics
bool aipowermeter_has_wall(const struct aipowermeter *a);    // a wall meter was read
// The model's summary as kept with the run (--meta model_summary=JSON), or NULL.
const char *aipowermeter_model(const struct aipowermeter *a);

void aipowermeter_metadata(const struct aipowermeter *a, struct buf *out);
// `more` is called after each line, so that `out` may be passed on.
void aipowermeter_power(const struct aipowermeter *a, struct buf *out, void (*more)(void *data), void *data);
void aipowermeter_results(const struct aipowermeter *a, struct buf *out);
void aipowermeter_wall(const struct aipowermeter *a, struct buf *out, void (*more)(void *data), void *data);
