#include "lib/cap_words.h"

#include "wattle.h"

#include <stdio.h>
#include <string.h>

static __thread struct {
	struct wattle_error error;
	char notice[1200];
} words;

struct wattle_error *cap_words_begin(void)
{
	words.error = (struct wattle_error){0};
	words.notice[0] = '\0';
	return &words.error;
}

struct wattle_error *cap_words_error(void)
{
	return &words.error;
}

int cap_words_end(int code)
{
	if (code < 0 && words.error.text[0] == '\0')
		error_set(&words.error, code, "%s", wattle_strerror(code));
	return code;
}

void cap_words_notice(const char *text)
{
	size_t used = strlen(words.notice);
	if (text[0] != '\0')
		snprintf(words.notice + used, sizeof(words.notice) - used, "%s%s", used > 0 ? "; " : "", text);
}

const char *wattle_cap_error(void)
{
	return words.error.text;
}

const char *wattle_cap_notice(void)
{
	return words.notice;
}
