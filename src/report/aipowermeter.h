/* Export of a run in AIPowerMeter's folder layout (GreenAI-Uppa/AIPowerMeter), for its reader and for programs that use
 * it. docs/exports.md lists all keys. Creates texts only; task/ writes the files. */
#pragma once

#include "analysis/energy/timeline.h"
#include "base/buf.h"

struct aipowermeter;

// Prepares the data of all texts, allocated in the arena. NULL: -ENOMEM.
struct aipowermeter *aipowermeter_new(const struct run *run, struct arena *arena);

// True if there are rows to write: a segment with a duration, and a known wall-clock time.
bool aipowermeter_has_rows(const struct aipowermeter *a);
bool aipowermeter_has_results(const struct aipowermeter *a); // the program reported metrics
bool aipowermeter_has_wall(const struct aipowermeter *a);    // a wall meter was read
// The model summary stored with the run (--meta model_summary=JSON), or NULL.
const char *aipowermeter_model(const struct aipowermeter *a);

void aipowermeter_metadata(const struct aipowermeter *a, struct buf *out);
// `more` is called after each line, so that the caller can flush `out`.
void aipowermeter_power(const struct aipowermeter *a, struct buf *out, void (*more)(void *data), void *data);
void aipowermeter_results(const struct aipowermeter *a, struct buf *out);
void aipowermeter_wall(const struct aipowermeter *a, struct buf *out, void (*more)(void *data), void *data);
