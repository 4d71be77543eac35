#include "serve/http.h"

#include "base/util.h"

#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct file_row {
	const char *teaches;
	const char *text;
	mode_t mode;
	int result;
	const char *token;
	const char *says; // NULL: refused
} files[] = {
	{"one line", "s3cret\n", 0600, 0, "s3cret", NULL},
	{"token file without a newline at the end", "s3cret", 0400, 0, "s3cret", NULL},
	{"token file with Windows line ends", "s3cret\r\n", 0600, 0, "s3cret", NULL},
	{"token file readable by others: refused", "s3cret\n", 0644, -EACCES, NULL, "chmod 600"},
	{"token file readable by a group: refused", "s3cret\n", 0640, -EACCES, NULL, "chmod 600"},
	{"token file writable by others: refused", "s3cret\n", 0602, -EACCES, NULL, "chmod 600"},
	{"empty", "", 0600, -EINVAL, NULL, "is empty"},
	{"token file with only a newline: refused", "\n", 0600, -EINVAL, NULL, "is empty"},
	{"two lines", "one\ntwo\n", 0600, -EINVAL, NULL, "one line"},
	{"token with a blank: refused", "one two\n", 0600, -EINVAL, NULL, "without blanks"},
	{"token beyond ASCII, which browsers and curl encode differently: refused", "s\xc3\xa9same\n", 0600, -EINVAL,
		NULL, "ASCII"},
};

static void write_file(const char *path, const char *text, size_t size, mode_t mode)
{
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void file_path(char *path, size_t size)
{
	const char *folder = getenv("TMPDIR");
	snprintf(path, size, "%s/wattle-token-%d", folder != NULL ? folder : "/tmp", (int)getpid());
}

static void check_file(void **state)
{
	const struct file_row *row = *state;
	struct token token = {0};
	struct wattle_error error = {0};
	char path[256];
	file_path(path, sizeof(path));
	write_file(path, row->text, strlen(row->text), row->mode);
	assert_int_equal(token_read(&token, path, &error), row->result);
	unlink(path);
	if (row->token != NULL)
		assert_string_equal(token.text, row->token);
	if (row->says != NULL)
		assert_non_null(strstr(error.text, row->says));
	if (row->says != NULL)
		assert_non_null(strstr(error.text, path));
}

static const struct credential_row {
	const char *teaches;
	bool is_named; // the folder of the file, as systemd names it
	mode_t mode;
	int result;
} credentials[] = {
	{"systemd credential with an access list, which appears as group permission: accepted", true, 0440, 0},
	{"systemd credential readable by everybody: refused", true, 0444, -EACCES},
	{"group-readable file elsewhere: refused", false, 0440, -EACCES},
};

static void check_credential(void **state)
{
	const struct credential_row *row = *state;
	struct token token = {0};
	struct wattle_error error = {0};
	char path[256], folder[256];
	file_path(path, sizeof(path));
	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = '\0';
	write_file(path, "s3cret\n", 7, row->mode);
	setenv("CREDENTIALS_DIRECTORY", row->is_named ? folder : "/run/credentials/another", 1);
	int r = token_read(&token, path, &error);
	unsetenv("CREDENTIALS_DIRECTORY");
	unlink(path);
	assert_int_equal(r, row->result);
}

static void longest(void **state)
{
	char path[256], text[TOKEN_MAX + 2];
	struct token token = {0};
	struct wattle_error error = {0};
	file_path(path, sizeof(path));
	memset(text, 'x', sizeof(text));
	text[TOKEN_MAX] = '\n';
	write_file(path, text, TOKEN_MAX + 1, 0600);
	assert_int_equal(token_read(&token, path, &error), 0);
	assert_int_equal(token.length, TOKEN_MAX);
	text[TOKEN_MAX] = 'x';
	write_file(path, text, TOKEN_MAX + 1, 0600);
	assert_int_equal(token_read(&token, path, &error), -EINVAL);
	unlink(path);
}

static void no_file(void **state)
{
	struct token token = {0};
	struct wattle_error error = {0};
	assert_int_equal(token_read(&token, "/nowhere/token", &error), -ENOENT);
	assert_int_equal(token_read(&token, "/", &error), -EINVAL);
}

static const struct match_row {
	const char *teaches;
	const char *authorization;
	bool matches;
} matches[] = {
	{"Bearer", "Bearer s3cret", true},
	{"Authorization scheme in any case", "bearer s3cret", true},
	{"Bearer with several blanks", "Bearer   s3cret", true},
	{"no header", NULL, false},
	{"another token", "Bearer s3creT", false},
	{"Bearer with the beginning of the token: refused", "Bearer s3cre", false},
	{"Bearer with the token and more: refused", "Bearer s3crets", false},
	{"twice", "Bearer s3crets3cret", false},
	{"Bearer without a token: refused", "Bearer ", false},
	{"token without a scheme: refused", "s3cret", false},
	{"Basic, no name: ':s3cret'", "Basic OnMzY3JldA==", true},
	{"Basic, any name: 'any:s3cret'", "Basic YW55OnMzY3JldA==", true},
	{"Basic without padding", "Basic YW55OnMzY3JldA", true},
	{"Basic, a colon in the password: 'any:s3cret:x'", "Basic YW55OnMzY3JldDp4", false},
	{"Basic, the token as the name: 's3cret:'", "Basic czNjcmV0Og==", false},
	{"Basic, no colon: 's3cret'", "Basic czNjcmV0", false},
	{"Basic with invalid base64: refused", "Basic :s3cret", false},
	{"Basic, nothing", "Basic ", false},
	{"Digest: refused", "Digest username=\"s3cret\"", false},
};

static void check_match(void **state)
{
	const struct match_row *row = *state;
	const struct token token = {.text = "s3cret", .length = 6};
	assert_int_equal(token_matches(&token, row->authorization), row->matches);
}

static void long_credentials(void **state)
{
	const struct token token = {.text = "s3cret", .length = 6};
	char text[8192] = "Basic ";
	memset(text + 6, 'A', sizeof(text) - 7);
	text[sizeof(text) - 1] = '\0';
	assert_false(token_matches(&token, text));
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, files, check_file);
	ROWS_ADD(&tests, credentials, check_credential);
	ROWS_ADD_ONE(&tests, "longest token: accepted; a longer one: refused", longest);
	ROWS_ADD_ONE(&tests, "missing file, and a folder: refused", no_file);
	ROWS_ADD(&tests, matches, check_match);
	ROWS_ADD_ONE(&tests, "credentials longer than any: refused", long_credentials);
	return rows_run(&tests, "token");
}
