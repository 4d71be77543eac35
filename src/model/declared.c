/* Shapes that the file declares. */
#include "model/internal.h"

void declared_apply(struct walk *walk, const Onnx__ValueInfoProto *info, struct value *value)
{
	const Onnx__TypeProto__Tensor *tensor = info->type != NULL ? info->type->tensor_type : NULL;
	if (tensor == NULL || value_ok(walk->stored_batch)) // declared for another batch
		return;
	if (value->type == ONNX_UNDEFINED)
		value->type = tensor->elem_type;
	const Onnx__TensorShapeProto *shape = tensor->shape;
	if (shape == NULL || shape->n_dim > VALUE_RANK_MAX)
		return;
	if (value->ranked && (size_t)value->rank != shape->n_dim) {
		walk->n_disagreements++;
		return;
	}
	for (size_t i = 0; i < shape->n_dim; i++) {
		int64_t *dim = &value->dims[i];
		if (!value->ranked)
			*dim = VALUE_MISSING;
		if (!shape->dim[i]->has_dim_value || shape->dim[i]->dim_value < 0)
			continue;
		if (value_ok(*dim) && *dim != shape->dim[i]->dim_value)
			walk->n_disagreements++;
		else
			*dim = shape->dim[i]->dim_value;
	}
	value->ranked = true;
	value->rank = (int)shape->n_dim;
}
