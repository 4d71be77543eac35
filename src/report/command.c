#include "report/phrases.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

int command_quoted(const char *json, struct buf *out)
{
	json_t *words = json_loads(json, 0, NULL), *word;
	size_t i;
	if (!json_is_array(words)) {
		json_decref(words);
		return -EINVAL;
	}
	json_array_foreach(words, i, word) if (json_is_string(word))
		buf_add(out, json_string_value(word), strlen(json_string_value(word)) + 1);
	json_decref(words);
	return out->failed;
}
