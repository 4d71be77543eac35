#include "lib/cap.h"

#include "wattle.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not __thread: the writer of spans wants its variables where signal handlers reach them, in the part of a thread's memory that is
 * laid out at start, of which libraries that are loaded later get little. */
struct words {
	struct wattle_error error;
	char notice[1200];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void make_key(void)
{
	has_key = pthread_key_create(&key, free) == 0;
}

// NULL: no memory, and nothing is said.
static struct words *words_here(void)
{
	pthread_once(&once, make_key);
	struct words *words = has_key ? pthread_getspecific(key) : NULL;
	if (words != NULL || !has_key)
		return words;
	words = calloc(1, sizeof(*words));
	if (words != NULL && pthread_setspecific(key, words) != 0) {
		free(words);
		words = NULL;
	}
	return words;
}

struct wattle_error *cap_words_begin(void)
{
	struct words *words = words_here();
	if (words == NULL)
		return NULL;
	words->error = (struct wattle_error){0};
	words->notice[0] = '\0';
	return &words->error;
}

struct wattle_error *cap_words_error(void)
{
	struct words *words = words_here();
	return words != NULL ? &words->error : NULL;
}

int cap_words_end(int code)
{
	struct words *words = words_here();
	if (code < 0 && words != NULL && words->error.text[0] == '\0')
		error_set(&words->error, code, "%s", wattle_strerror(code));
	return code;
}

void cap_words_notice(const char *text)
{
	struct words *words = words_here();
	size_t used = words != NULL ? strlen(words->notice) : 0;
	if (words != NULL && text[0] != '\0')
		snprintf(words->notice + used, sizeof(words->notice) - used, "%s%s", used > 0 ? "; " : "", text);
}

const char *wattle_cap_error(void)
{
	struct words *words = words_here();
	return words != NULL ? words->error.text : "";
}

const char *wattle_cap_notice(void)
{
	struct words *words = words_here();
	return words != NULL ? words->notice : "";
}
