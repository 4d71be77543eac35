/* Stored tensors, and which of them are parameters: floating-point tensors that a node uses other than as running
 * statistics or as a scale, and integer tensors that a node takes as quantised weights. Each counts once. */
#include "model/internal.h"

#include <errno.h>

enum use { USE_SETTING = 1, USE_FLOAT = 2, USE_WEIGHT = 4 };

// One record per tensor, however often its node is visited.
static struct stored *record(struct walk *walk, const void *identity)
{
	int64_t id = intern_number(&walk->stored_ids, &identity, sizeof(identity));
	if (id >= 0 && (size_t)id < walk->n_stored)
		return walk->stored[id];
	struct stored **all = array_reserve(walk->stored, walk->n_stored, &walk->stored_capacity,
		sizeof(struct stored *), 64);
	if (all != NULL)
		walk->stored = all;
	struct stored *stored = id >= 0 && all != NULL ? walk_alloc(walk, 1, sizeof(*stored)) : NULL;
	if (stored == NULL) {
		walk_fail(walk, -ENOMEM, "out of memory for the graph of %s", walk->path);
		return NULL;
	}
	walk->stored[walk->n_stored++] = stored;
	return stored;
}

static const char *name_of(const Onnx__TensorProto *tensor)
{
	return tensor->name != NULL && tensor->name[0] != '\0' ? tensor->name : "of a Constant";
}

// Reads the shape; false if it is invalid.
static bool read_dims(struct walk *walk, const char *name, const int64_t *dims, size_t n, struct value *value,
	int64_t *ret_elements)
{
	int64_t elements = 1;
	bool fits = true, empty = false;
	for (size_t i = 0; i < n; i++) {
		if (dims[i] < 0) {
			walk_fail(walk, -EBADMSG, "%s: tensor '%.200s' has the invalid size %lld", walk->path, name,
				(long long)dims[i]);
			return false;
		}
		empty = empty || dims[i] == 0;
		fits = fits && dims_multiply(elements, dims[i], &elements);
	}
	if (!fits && !empty) {
		walk_fail(walk, -EOVERFLOW, "%s: tensor '%.200s' has more elements than 64 bits can count", walk->path,
			name);
		return false;
	}
	value->ranked = n <= VALUE_RANK_MAX;
	value->rank = (int)n;
	if (value->ranked && n > 0)
		memcpy(value->dims, dims, sizeof(dims[0]) * n);
	*ret_elements = empty ? 0 : elements;
	return true;
}

// raw_data must have the length given by the shape; else the file is damaged, and the figures would be wrong.
static bool check_length(struct walk *walk, const Onnx__TensorProto *tensor, int64_t elements)
{
	int bits = onnx_type_bits(tensor->data_type);
	if (!tensor->has_raw_bytes || bits == 0 || tensor->data_location == ONNX_LOCATION_EXTERNAL)
		return true;
	__int128 wanted = ((__int128)elements * bits + 7) / 8;
	if (wanted == (__int128)tensor->raw_bytes)
		return true;
	walk_fail(walk, -EBADMSG, "%s is damaged: tensor '%.200s' has %lld elements and %llu bytes", walk->path,
		name_of(tensor), (long long)elements, (unsigned long long)tensor->raw_bytes);
	return false;
}

/* ---- small contents ---- */

static int64_t raw_int(const unsigned char *at, int32_t type)
{
	int64_t whole;
	int32_t half;
	switch (type) {
	case ONNX_INT64:
		memcpy(&whole, at, sizeof(whole));
		return whole == INT64_MIN ? INT64_MIN + 1 : whole; // equivalent as an end of a Slice
	case ONNX_INT32:
		memcpy(&half, at, sizeof(half));
		return half;
	case ONNX_BOOL:
	case ONNX_UINT8:
		return *at;
	default:
		return VALUE_MISSING;
	}
}

static const int64_t *read_ints(struct walk *walk, const Onnx__TensorProto *t, int64_t n)
{
	int64_t *ints = walk_alloc(walk, (size_t)n, sizeof(*ints));
	bool is_raw = t->has_raw_data && t->raw_data.len > 0;
	size_t size = (size_t)onnx_type_bits(t->data_type) / 8;
	if (ints == NULL || (is_raw && t->raw_data.len != (size_t)n * size) ||
		(!is_raw && t->n_int64_data != (size_t)n && t->n_int32_data != (size_t)n))
		return NULL;
	for (int64_t i = 0; i < n; i++)
		ints[i] = is_raw                       ? raw_int(t->raw_data.data + (size_t)i * size, t->data_type)
			: t->n_int64_data == (size_t)n ? raw_int((const unsigned char *)&t->int64_data[i], ONNX_INT64)
						       : t->int32_data[i];
	return ints;
}

static const double *read_floats(struct walk *walk, const Onnx__TensorProto *t, int64_t n)
{
	double *floats = walk_alloc(walk, (size_t)n, sizeof(*floats));
	bool is_raw = t->has_raw_data && t->raw_data.len > 0, is_double = t->data_type == ONNX_DOUBLE;
	if (floats == NULL || (is_raw && t->raw_data.len != (size_t)n * (is_double ? 8 : 4)) ||
		(!is_raw && t->n_float_data != (size_t)n && t->n_double_data != (size_t)n))
		return NULL;
	for (int64_t i = 0; i < n; i++) {
		float single;
		if (is_raw && is_double)
			memcpy(&floats[i], t->raw_data.data + i * 8, sizeof(floats[i]));
		else if (is_raw) {
			memcpy(&single, t->raw_data.data + i * 4, sizeof(single));
			floats[i] = (double)single;
		} else
			floats[i] = t->n_float_data == (size_t)n ? (double)t->float_data[i] : t->double_data[i];
	}
	return floats;
}

static void read_contents(struct walk *walk, const Onnx__TensorProto *tensor, struct value *value)
{
	int64_t n = value_few(value);
	if (n < 0 || tensor->data_location == ONNX_LOCATION_EXTERNAL)
		return;
	switch (tensor->data_type) {
	case ONNX_INT64:
	case ONNX_INT32:
	case ONNX_BOOL:
	case ONNX_UINT8:
		value->ints = read_ints(walk, tensor, n);
		return;
	case ONNX_FLOAT:
	case ONNX_DOUBLE:
		value->floats = read_floats(walk, tensor, n);
		return;
	default:
		return;
	}
}

/* ---- records ---- */

static struct stored *add(struct walk *walk, const void *identity, struct stored like, struct value *value)
{
	struct stored *stored = record(walk, identity);
	if (stored == NULL)
		return NULL;
	if (stored->name == NULL)
		*stored = like;
	value->stored = stored;
	value->type = like.type;
	value->fixed = true;
	value->number = true;
	return stored;
}

void stored_tensor(struct walk *walk, const Onnx__TensorProto *tensor, bool is_constant, struct value *value)
{
	int64_t elements;
	if (!read_dims(walk, name_of(tensor), tensor->dims, tensor->n_dims, value, &elements) ||
		!check_length(walk, tensor, elements))
		return;
	read_contents(walk, tensor, value);
	struct stored like = {.name = name_of(tensor),
		.elements = elements,
		.type = tensor->data_type,
		.is_constant = is_constant};
	add(walk, tensor, like, value);
}

void stored_sparse(struct walk *walk, const Onnx__SparseTensorProto *tensor, bool is_constant, struct value *value)
{
	struct value numbers = {0};
	int64_t elements, whole;
	if (tensor->values == NULL ||
		!read_dims(walk, name_of(tensor->values), tensor->dims, tensor->n_dims, value, &whole) ||
		!read_dims(walk, name_of(tensor->values), tensor->values->dims, tensor->values->n_dims, &numbers,
			&elements))
		return;
	struct stored like = {.name = name_of(tensor->values),
		.elements = elements,
		.type = tensor->values->data_type,
		.is_constant = is_constant};
	add(walk, tensor, like, value);
}

void stored_input(struct walk *walk, const Onnx__ValueInfoProto *input, struct value *value)
{
	struct stored like = {.name = input->name, .type = value->type};
	if (!value_count(value, &like.elements))
		walk_fail(walk, -EOVERFLOW, "%s: tensor '%.200s' has more elements than 64 bits can count", walk->path,
			input->name);
	else
		add(walk, input, like, value);
}

/* ---- parameters ---- */

static enum use use_of(const struct operator_row *what, size_t input, enum use usual)
{
	uint32_t bit = input < 32 ? UINT32_C(1) << input : 0;
	if (what == NULL)
		return usual;
	return (what->settings & bit) != 0 ? USE_SETTING : (what->weights & bit) != 0 ? USE_WEIGHT : usual;
}

static int64_t claim_one(struct stored *stored, enum use use)
{
	bool is_float = onnx_type_is_float(stored->type);
	bool is_count = stored->type == ONNX_INT64 || stored->type == ONNX_BOOL || stored->type == ONNX_STRING;
	if (use == USE_SETTING)
		stored->is_setting = true;
	// A single number in the graph itself (2 in x * 2) is no weight; an initializer with one element can be one.
	if (use == USE_SETTING || stored->is_parameter || (stored->is_constant && stored->elements == 1) ||
		!(is_float || (use == USE_WEIGHT && !is_count)))
		return 0;
	stored->is_parameter = true;
	return stored->elements;
}

struct sensor_locks { // values whose sources are still to be followed
	struct {
		const struct value *value;
		enum use use;
	} * items; // owned
	size_t n, capacity;
};

static bool push(struct sensor_locks *claims, const struct value *value, enum use use)
{
	if (value == NULL || !value->fixed || (value->stored == NULL && value->maker == NULL))
		return true;
	void *items = array_reserve(claims->items, claims->n, &claims->capacity, sizeof(*claims->items), 16);
	if (items == NULL)
		return false;
	claims->items = items;
	claims->items[claims->n].value = value;
	claims->items[claims->n++].use = use;
	return true;
}

static bool push_inputs(struct sensor_locks *claims, const struct operator_row *what, const struct value *const *in,
	size_t n, enum use usual)
{
	bool done = true;
	for (size_t i = 0; i < n; i++)
		done = push(claims, in[i], use_of(what, i, usual)) && done;
	return done;
}

int64_t stored_claim(const struct op *op)
{
	struct sensor_locks claims = {0};
	int64_t claimed = 0;
	bool done = push_inputs(&claims, op->what, op->in, op->n_in, USE_FLOAT);
	while (done && claims.n > 0) {
		const struct value *value = claims.items[--claims.n].value;
		enum use use = claims.items[claims.n].use;
		if (value->stored != NULL) {
			int64_t elements = claim_one(value->stored, use);
			if (!value_ok(elements) || !value_ok(claimed))
				claimed = VALUE_MISSING;
			else if (__builtin_add_overflow(claimed, elements, &claimed))
				walk_fail(op->walk, -EOVERFLOW, "%s has more parameters than 64 bits can count",
					op->walk->path);
		} else if ((value->maker->seen & use) == 0) {
			value->maker->seen |= use;
			done = push_inputs(&claims, value->maker->what, value->maker->in, value->maker->n_in, use);
		}
	}
	free(claims.items);
	if (!done)
		walk_fail(op->walk, -ENOMEM, "out of memory for the graph of %s", op->walk->path);
	return claimed;
}

int64_t stored_unused(struct walk *walk)
{
	int64_t unused = 0;
	for (size_t i = 0; i < walk->n_stored; i++) {
		struct stored *stored = walk->stored[i];
		if (stored->name == NULL || stored->is_constant || stored->is_setting || stored->is_parameter ||
			!onnx_type_is_float(stored->type) || !value_ok(stored->elements))
			continue;
		stored->is_parameter = true;
		if (__builtin_add_overflow(unused, stored->elements, &unused))
			walk_fail(walk, -EOVERFLOW, "%s has more parameters than 64 bits can count", walk->path);
	}
	return unused;
}

void stored_sum(struct walk *walk, int64_t *ret_parameters, int64_t *ret_bytes)
{
	__int128 parameters = 0, bits = 0;
	bool known = true;
	for (size_t i = 0; i < walk->n_stored; i++) {
		const struct stored *stored = walk->stored[i];
		if (!stored->is_parameter)
			continue;
		known = known && value_ok(stored->elements);
		parameters += stored->elements;
		bits += (__int128)stored->elements * onnx_type_bits(stored->type);
	}
	if (known && parameters > INT64_MAX)
		walk_fail(walk, -EOVERFLOW, "%s has more parameters than 64 bits can count", walk->path);
	*ret_parameters = known ? (int64_t)parameters : VALUE_MISSING;
	*ret_bytes = known && bits / 8 <= INT64_MAX ? (int64_t)(bits / 8) : VALUE_MISSING;
}
