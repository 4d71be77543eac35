/* JSON that a field table describes, read back into the struct. Read are the members that lie in the struct: at an offset, in its objects,
 * in fields that stand inline, in lists of FIELD_ITEMS. Getters, maps and what pointers lead to are not. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/fields.h"

#include <jansson.h>

/* Every such member is written: unknown where its key is missing or null, and false or 0 where the type knows no unknown. Keys that
 * no field has are ignored. Texts and arrays are in the arena. -EINVAL with a sentence that names the key: a value of another type, or
 * out of its range. -ENOMEM. Then what was read until then stands. */
int fields_read(const json_t *object, const struct object_type *type, void *data, struct arena *arena,
	struct wattle_error *reterr);
// The objects of an array, each `size` bytes; NULL or null: none.
int fields_read_list(const json_t *array, const struct object_type *type, size_t size, struct arena *arena,
	void **ret_items, size_t *ret_n, struct wattle_error *reterr);
