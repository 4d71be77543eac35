#include "now/processes.h"

#include "base/file.h"
#include "base/utf8.h"
#include "base/util.h"

#include <stdio.h>

/* Length of the character at text; 0: a control character, or no valid one. C1 controls move the cursor of some terminals,
 * as C0's do of all. */
static size_t printable_length(const char *text)
{
	const unsigned char first = (unsigned char)text[0], second = first != 0 ? (unsigned char)text[1] : 0;
	bool is_c1 = first == 0xc2 && second < 0xa0;
	return first < 0x20 || first == 0x7f || is_c1 ? 0 : utf8_length(text);
}

// Never cuts a character in two.
static size_t copy_clean(const char *text, size_t size, char *out, size_t out_size)
{
	size_t used = 0;
	for (size_t i = 0, step; i<size; i += step> 0 ? step : 1) {
		step = printable_length(text + i);
		if (used + (step > 0 ? step : 1) >= out_size)
			break;
		if (step > 0)
			memcpy(out + used, text + i, step);
		else
			out[used] = text[i] == '\0' ? ' ' : '?';
		used += step > 0 ? step : 1;
	}
	out[used] = '\0';
	return used;
}

bool process_words_join(const char *words, size_t size, char *out, size_t out_size)
{
	while (size > 0 && words[size - 1] == '\0')
		size--;
	size_t used = copy_clean(words, size, out, out_size);
	while (used > 0 && out[used - 1] == ' ')
		out[--used] = '\0';
	return used > 0;
}

static void put_name(const char *comm, char *out, size_t out_size)
{
	size_t used = copy_clean(comm, strlen(comm), out + 1, out_size - 2);
	out[0] = '[';
	memcpy(out + 1 + used, "]", 2);
}

static uid_t uid_in(const char *status)
{
	const char *line = strstr(status, "\nUid:");
	return line != NULL ? (uid_t)strtoul(line + 5, NULL, 10) : (uid_t)-1;
}

void process_words_read(const struct wattle_env *env, const char *comm, struct now_process *process)
{
	char path[32], text[1024];
	snprintf(path, sizeof(path), "%d/cmdline", (int)process->pid);
	ssize_t length = file_read_in(env->procfs_fd, path, text, sizeof(text));
	if (length <= 0 || !process_words_join(text, (size_t)length, process->command, sizeof(process->command)))
		put_name(comm, process->command, sizeof(process->command));
	snprintf(path, sizeof(path), "%d/status", (int)process->pid);
	if (file_read_in(env->procfs_fd, path, text, sizeof(text)) > 0)
		process->uid = uid_in(text);
}
