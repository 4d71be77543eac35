#include "spank/step_end.h"

#include "base/util.h"

#include <stdio.h>

static const char mark[] = "wattle: ", between[] = "; ";

void comment_find(const char *shown, char *ret_comment, size_t size)
{
	static const char key[] = "\n   Comment=";
	ret_comment[0] = '\0';
	const char *at = strstr(shown, key);
	if (at == NULL)
		return;
	at += sizeof(key) - 1;
	size_t length = strcspn(at, "\n");
	while (length > 0 && at[length - 1] == ' ')
		length--;
	snprintf(ret_comment, size, "%.*s", (int)length, at);
	if (strcmp(ret_comment, "(null)") == 0)
		ret_comment[0] = '\0';
}

static void add(char *out, size_t size, const char *text, size_t length)
{
	size_t n = strlen(out);
	snprintf(out + n, size - n, "%s%.*s", n > 0 ? between : "", (int)length, text);
}

void comment_make(const char *old, const char *line, char *ret_comment, size_t size)
{
	ret_comment[0] = '\0';
	while (*old != '\0') {
		const char *next = strstr(old, between);
		size_t length = next != NULL ? (size_t)(next - old) : strlen(old);
		if (length > 0 && strncmp(old, mark, sizeof(mark) - 1) != 0)
			add(ret_comment, size, old, length);
		old += next != NULL ? length + sizeof(between) - 1 : length;
	}
	char ours[512];
	int length = snprintf(ours, sizeof(ours), "%s%s", mark, line);
	add(ret_comment, size, ours, (size_t)length < sizeof(ours) ? (size_t)length : sizeof(ours) - 1);
}
