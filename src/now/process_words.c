#include "now/processes.h"

#include "base/file.h"
#include "base/num.h"
#include "base/utf8.h"
#include "base/util.h"

#include <stdio.h>

// C1 controls move the cursor of some terminals, as C0's do of all.
static bool is_control(const char *text)
{
	const unsigned char first = (unsigned char)text[0];
	return first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)text[1] < 0xa0);
}

// Never cuts a character in two.
// What does not fit ends in "…", where that does.
static size_t copy_clean(const char *text, size_t size, char *out, size_t out_size)
{
	static const char mark[] = "…";
	size_t used = 0, marked = 0; // marked: as much as leaves room for the mark
	for (size_t i = 0, length; i<size; i += length> 0 ? length : 1) {
		length = utf8_length(text + i); // of a NUL: 1
		bool is_fine = length > 0 && !is_control(text + i);
		if (used + sizeof(mark) <= out_size)
			marked = used;
		if (used + (is_fine ? length : 1) >= out_size) {
			bool fits = out_size >= sizeof(mark);
			used = fits ? marked : used;
			memcpy(out + used, mark, fits ? sizeof(mark) - 1 : 0);
			used += fits ? sizeof(mark) - 1 : 0;
			break;
		}
		if (is_fine)
			memcpy(out + used, text + i, length);
		else
			out[used] = text[i] == '\0' ? ' ' : '?';
		used += is_fine ? length : 1;
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
	uint64_t uid;
	if (line == NULL)
		return (uid_t)-1;
	line += strlen("\nUid:");
	line += strspn(line, "\t ");
	bool known = num_parse_sysfs_u64(line, strcspn(line, "\t\n"), &uid) == 0 && uid <= UINT32_MAX;
	return known ? (uid_t)uid : (uid_t)-1;
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
