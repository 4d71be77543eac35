#include "spank/spank.h"

#include "base/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

static const char mark[] = "wattle: ", between[] = "; ", indent[] = "\n   ";

// At the end of a line of scontrol's output: whether the next line starts with a key, or there is none. False: the
// comment continues on it.
static bool is_key_next(const char *at)
{
	if (at[0] == '\n' && at[strspn(at, "\n")] == '\0')
		return true;
	if (strncmp(at, indent, sizeof(indent) - 1) != 0)
		return false;
	at += sizeof(indent) - 1;
	size_t length = 0;
	while (isalnum((unsigned char)at[length]) || at[length] == '/' || at[length] == ':')
		length++;
	return length > 0 && at[length] == '=';
}

int comment_find(const char *shown, char *ret_comment, size_t size)
{
	static const char key[] = "\n   Comment=";
	ret_comment[0] = '\0';
	const char *at = strstr(shown, key);
	if (at == NULL)
		return 0;
	at += sizeof(key) - 1;
	size_t length = strcspn(at, "\n");
	if (!is_key_next(at + length))
		return -EILSEQ;
	while (length > 0 && at[length - 1] == ' ')
		length--;
	if (length >= size)
		return -EMSGSIZE;
	snprintf(ret_comment, size, "%.*s", (int)length, at);
	if (strcmp(ret_comment, "(null)") == 0)
		ret_comment[0] = '\0';
	return 0;
}

bool comment_is_too_late(const char *shown)
{
	static const char key[] = "\n   JobState=";
	static const char *const going_on[] = {"RUNNING", "SUSPENDED", "PENDING"}; // PENDING: requeued
	const char *state = strstr(shown, key);
	if (state == NULL)
		return false;
	state += sizeof(key) - 1;
	for (size_t i = 0; i < ARRAY_SIZE(going_on); i++)
		if (strncmp(state, going_on[i], strlen(going_on[i])) == 0)
			return false;
	return true;
}

static int add(char *out, size_t size, const char *text, size_t length)
{
	size_t n = strlen(out);
	size_t needed = (n > 0 ? sizeof(between) - 1 : 0) + length;
	if (n + needed >= size)
		return -EMSGSIZE;
	snprintf(out + n, size - n, "%s%.*s", n > 0 ? between : "", (int)length, text);
	return 0;
}

int comment_make(const char *old, const char *line, char *ret_comment, size_t size)
{
	int r = 0;
	ret_comment[0] = '\0';
	while (r == 0 && *old != '\0') {
		const char *next = strstr(old, between);
		size_t length = next != NULL ? (size_t)(next - old) : strlen(old);
		if (length > 0 && strncmp(old, mark, sizeof(mark) - 1) != 0)
			r = add(ret_comment, size, old, length);
		old += next != NULL ? length + sizeof(between) - 1 : length;
	}
	char ours[512];
	int length = snprintf(ours, sizeof(ours), "%s%s", mark, line);
	if (r < 0 || (size_t)length >= sizeof(ours))
		return -EMSGSIZE;
	return add(ret_comment, size, ours, (size_t)length);
}
