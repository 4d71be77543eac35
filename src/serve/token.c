#include "serve/http.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* systemd passes credentials as root-owned files with an access list where possible. The group bits are then the ACL mask,
 * and only the service has access. */
static bool is_credential(const char *path)
{
	const char *folder = secure_getenv("CREDENTIALS_DIRECTORY");
	size_t length = folder != NULL ? strlen(folder) : 0;
	return length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/';
}

static int check_is_secret(int fd, const char *path, struct wattle_error *reterr)
{
	const mode_t others = is_credential(path) ? S_IRWXO | S_IWGRP : S_IRWXO | S_IRWXG;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_set(reterr, -errno, "--token-file %.200s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(reterr, -EINVAL,
			"--token-file %.200s: not a regular file; give a file with the token on one line", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return error_set(reterr, -EACCES,
			"--token-file %.200s: belongs to another user, who can read the token; give a file "
			"of your own", path);
	if ((st.st_mode & others) != 0)
		return error_set(reterr, -EACCES,
			"--token-file %.200s: other users can read or change it; run `chmod 600 %.200s`", path, path);
	return 0;
}

static ssize_t read_all(int fd, char *out, size_t size)
{
	size_t n = 0;
	while (n < size) {
		ssize_t got = read(fd, out + n, size - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

// A Bearer header cannot carry blanks and control characters, and the encoding of non-ASCII bytes is ambiguous.
static bool is_sendable(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

int token_read(struct token *ret_token, const char *path, struct wattle_error *reterr)
{
	char text[TOKEN_MAX + 3];
	// Non-blocking: a FIFO of that name would block the start.
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(reterr, -errno, "--token-file %.200s: %s", path, strerror(errno));
	int r = check_is_secret(fd, path, reterr);
	if (r < 0)
		return r;
	ssize_t n = read_all(fd, text, sizeof(text));
	if (n < 0)
		return error_set(reterr, (int)n, "--token-file %.200s: %s", path, strerror((int)-n));
	size_t length = (size_t)n;
	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--;
	if (length == 0)
		return error_set(reterr, -EINVAL,
			"--token-file %.200s: is empty; create a token with `(umask 077; head -c 24 "
			"/dev/urandom | base64 > %.200s)`",
			path, path);
	if (length > TOKEN_MAX || !is_sendable(text, length))
		return error_set(reterr, -EINVAL,
			"--token-file %.200s: must hold one line of at most %d ASCII characters without blanks", path,
			(int)TOKEN_MAX);
	*ret_token = (struct token){.length = length};
	memcpy(ret_token->text, text, length);
	return 0;
}

// Takes the same number of steps for every `given` of one length, whatever it shares with the token.
static bool is_token(const struct token *token, const unsigned char *given, size_t length)
{
	volatile unsigned int differ = length != token->length;
	for (size_t i = 0; i < length; i++)
		differ |= given[i] ^ (unsigned char)token->text[i % token->length];
	return differ == 0;
}

static int base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;
	return at != NULL ? (int)(at - digits) : -1;
}

// Decodes up to the padding or the first invalid character. Output beyond `size` is dropped and then matches no token.
static size_t base64_decode(const char *text, unsigned char *out, size_t size)
{
	unsigned int bits = 0, n_bits = 0;
	size_t n = 0;
	for (int digit; n < size && (digit = base64_digit(*text)) >= 0; text++) {
		bits = (bits << 6 | (unsigned int)digit) & 0xffff;
		n_bits += 6;
		if (n_bits < 8)
			continue;
		n_bits -= 8;
		out[n++] = (unsigned char)(bits >> n_bits);
	}
	return n;
}

static bool is_basic(const struct token *token, const char *text)
{
	unsigned char credentials[2 * TOKEN_MAX];
	size_t n = base64_decode(text, credentials, sizeof(credentials));
	const unsigned char *colon = memchr(credentials, ':', n);
	return colon != NULL && is_token(token, colon + 1, n - (size_t)(colon + 1 - credentials));
}

bool token_matches(const struct token *token, const char *authorization)
{
	static const char bearer[] = "Bearer ", basic[] = "Basic ";
	if (authorization == NULL)
		return false;
	if (strncasecmp(authorization, bearer, strlen(bearer)) == 0) {
		const char *given = authorization + strlen(bearer);
		given += strspn(given, " ");
		return is_token(token, (const unsigned char *)given, strlen(given));
	}
	if (strncasecmp(authorization, basic, strlen(basic)) == 0)
		return is_basic(token, authorization + strlen(basic) + strspn(authorization + strlen(basic), " "));
	return false;
}
