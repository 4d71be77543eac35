#include "base/redact.h"

#include "base/util.h"
#include "rows.h"

static const struct row {
	const char *teaches;
	const char *words[12];    // NULL-terminated
	const char *expected[12]; // {NULL}: unchanged
} rows[] = {
	// Secrets: redacted.
	{"secret: option=value", {"train", "--password=hunter2"}, {"train", "--password=***"}},
	{"secret: option with a separate value", {"train", "--password", "hunter2", "--lr", "1"},
		{"train", "--password", "***", "--lr", "1"}},
	{"secret: option with a single dash", {"java", "-token", "abcdef", "Main"}, {"java", "-token", "***", "Main"}},
	{"a key", {"python", "train.py", "--api-key", "sk-1234", "--epochs", "3"},
		{"python", "train.py", "--api-key", "***", "--epochs", "3"}},
	{"secret: any letter case, no separator",
		{"x", "--apiKey=abc1", "--AccessToken", "abc2", "APIKEY=abc3", "hfToken=a4"},
		{"x", "--apiKey=***", "--AccessToken", "***", "APIKEY=***", "hfToken=***"}},
	{"an assignment", {"make", "token=abcdef", "key=0123456789", "db_pass=xyz"},
		{"make", "token=***", "key=***", "db_pass=***"}},
	{"secret: variable passed to env", {"env", "DB_PASSWORD=a=b c", "HF_TOKEN=hf_x", "python", "x.py"},
		{"env", "DB_PASSWORD=***", "HF_TOKEN=***", "python", "x.py"}},
	{"secret: all AWS variables",
		{"docker", "run", "-e", "AWS_SECRET_ACCESS_KEY=wJalr/K7MD", "-eAWS_SESSION_TOKEN=x", "img"},
		{"docker", "run", "-e", "AWS_SECRET_ACCESS_KEY=***", "-eAWS_SESSION_TOKEN=***", "img"}},
	{"a property", {"java", "-Djavax.net.ssl.keyStorePassword=changeit", "-Dtoken=abc", "-cp", "x.jar"},
		{"java", "-Djavax.net.ssl.keyStorePassword=***", "-Dtoken=***", "-cp", "x.jar"}},
	{"secret: setting within an option",
		{"helm", "install", "--set", "auth.rootPassword=secretpw", "--set=x.y=1,db.password=p"},
		{"helm", "install", "--set", "auth.rootPassword=***", "--set=x.y=1,db.password=***"}},
	{"secret: password of a URL", {"psql", "postgresql://u:p@h/db"}, {"psql", "postgresql://u:***@h/db"}},
	{"secret: password of a URL with an unescaped '@' or '/'", {"x", "http://u:p@ss@h/", "http://u:p/a@h"},
		{"x", "http://u:***@h/", "http://u:***@h"}},
	{"secret: password of a URL within an assignment", {"x", "DATABASE_URL=redis://:pw@h:6379/0"},
		{"x", "DATABASE_URL=redis://:***@h:6379/0"}},
	{"secret: token as the user of a URL",
		{"git", "clone", "https://ghp_0123456789abcdef@h/x", "HTTP://0123456789abcdef:@h",
			"git+https://0123456789abcdef@h"},
		{"git", "clone", "https://***@h/x", "HTTP://***:@h", "git+https://***@h"}},
	{"secret: header without a blank", {"curl", "-H", "PRIVATE-TOKEN:glpat-x", "-HX-Api-Key:abc", "https://h"},
		{"curl", "-H", "PRIVATE-TOKEN:***", "-HX-Api-Key:***", "https://h"}},
	{"secret: signatures and login secrets",
		{"x", "https://h/a?sig=ab%2Fc&n=1", "--signature=abc", "--jwt", "eyJ.a.b", "GITHUB_PAT=ghp_x", "--pin",
			"1234", "otp=123456"},
		{"x", "https://h/a?sig=***&n=1", "--signature=***", "--jwt", "***", "GITHUB_PAT=***", "--pin", "***",
			"otp=***"}},
	{"secret: assignment with blanks",
		{"python", "-c", "password = 'abc'; api_token ='d e'; n = 1", "db.password = abc", "token= \"x\""},
		{"python", "-c", "password = '***'; api_token ='***'; n = 1", "db.password = ***", "token= \"***\""}},
	{"secret: query field of a URL", {"curl", "https://h/v1?user=me&access_token=abc&n=1#top"},
		{"curl", "https://h/v1?user=me&access_token=***&n=1#top"}},
	{"secret: connection string of libpq", {"psql", "host=h user=me password=pw dbname=d"},
		{"psql", "host=h user=me password=*** dbname=d"}},
	{"secret: connection string of libpq with quotes", {"psql", "password='my secret' dbname=d"},
		{"psql", "password='***' dbname=d"}},
	{"secret: connection string of ODBC", {"x", "Server=h;Uid=sa;Pwd=secret;Database=d"},
		{"x", "Server=h;Uid=sa;Pwd=***;Database=d"}},
	{"a header", {"curl", "-H", "Authorization: Bearer abc.def", "-s", "https://h"},
		{"curl", "-H", "Authorization: ***", "-s", "https://h"}},
	{"secret: other authentication headers",
		{"curl", "-H", "X-Api-Key: abc", "-HCookie: session=abc", "--header=X-Auth-Token: t"},
		{"curl", "-H", "X-Api-Key: ***", "-HCookie: ***", "--header=X-Auth-Token: ***"}},
	{"JSON",
		{"curl", "-d", "{\"user\":\"me\",\"password\":\"pw\",\"n\":1}", "-d",
			"{\"api_key\": \"a b\", \"n\": 1}"},
		{"curl", "-d", "{\"user\":\"me\",\"password\":\"***\",\"n\":1}", "-d",
			"{\"api_key\": \"***\", \"n\": 1}"}},
	{"secret: password source of openssl", {"openssl", "enc", "-pass", "pass:hunter2", "-passin", "pass:hunter3"},
		{"openssl", "enc", "-pass", "***", "-passin", "pass:***"}},
	{"secret: short options of known programs", {"/usr/bin/mysql", "-uroot", "-pSECRET", "-h", "db"},
		{"/usr/bin/mysql", "-uroot", "-p***", "-h", "db"}},
	{"secret: short option of a known program after other words",
		{"sudo", "-u", "me", "mysqldump", "-pSECRET", "db"}, {"sudo", "-u", "me", "mysqldump", "-p***", "db"}},
	{"secret: short option with a separate value", {"sshpass", "-p", "SECRET", "ssh", "-p", "22", "h"},
		{"sshpass", "-p", "***", "ssh", "-p", "***", "h"}},
	{"secret: user and password",
		{"curl", "-sSu", "me:pw", "--proxy-user", "a:b", "--user=c:d", "-ue:f", "https://h"},
		{"curl", "-sSu", "me:***", "--proxy-user", "a:***", "--user=c:***", "-ue:***", "https://h"}},
	{"a script",
		{"sh", "-c",
			"mysql -pSECRET db; curl -H 'Authorization: Bearer x' https://u:p@h --password foo; A_TOKEN=b ls"},
		{"sh", "-c",
			"mysql -p*** db; curl -H 'Authorization: ***' https://u:***@h --password ***; A_TOKEN=*** ls"}},
	{"secret: user and password in quotes", {"sh", "-c", "x --password \"a b\" --n 1; y --token='c d' z"},
		{"sh", "-c", "x --password \"***\" --n 1; y --token='***' z"}},
	{"secret: in a process title that the program set", {"worker: run --token abcdef -x"},
		{"worker: run --token *** -x"}},
	{"secret: value that begins with a dash", {"x", "--token", "-Ab3_x", "y"}, {"x", "--token", "***", "y"}},
	{"secret: password of digits", {"x", "--password", "1234", "--pin=1"}, {"x", "--password", "***", "--pin=1"}},
	{"secret: key material that looks like a path", {"x", "--secret-key", "/wJalrXUtnFEMI", "--key=/wJal+rXU="},
		{"x", "--secret-key", "***", "--key=***"}},
	// No secrets: unchanged.
	{"no secret: name that begins like a secret's name",
		{"x", "--max-tokens=5", "--num_tokens", "128", "--tokenizer=bpe", "tokenizer=fast", "--keyboard=de",
			"--passes=3", "--author=me", "--keys", "a"},
		{NULL}},
	{"no secret: name that ends like a secret's name",
		{"x", "monkey=1", "--hockey", "stick", "--bypass=me", "turkey=x"}, {NULL}},
	{"no secret: name of the location of a secret",
		{"x", "--key-file", "/etc/key", "--password-file=pw", "--token-file", "t", "--password-stdin",
			"PASSWORD_FILE=/run/pw"},
		{NULL}},
	{"no secret: names for counts, sort keys and padding",
		{"x", "--max-token", "100", "--sort-key", "name", "--pad_token=<pad>", "--primary-key=id",
			"--eos-token", "</s>"},
		{NULL}},
	{"no secret: path of a key file",
		{"curl", "--key", "client.pem", "--key=/etc/ssl/k", "--credentials", "~/gcp.json", "PWD=/home/me"},
		{NULL}},
	{"no secret: short user of a URL, long user of an ssh URL",
		{"x", "https://user@host/", "ssh://0123456789abcdef@h"}, {NULL}},
	{"no secret: name that begins like a signature",
		{"x", "--pinned", "8", "--signal=9", "--patience", "3", "--jitter", "10", "--pin-memory", "12",
			"--pattern=a b"},
		{NULL}},
	{"no secret: blanks around an ordinary assignment",
		{"sh", "-c", "[ key = value ]; TOKEN= run; password == x; n = 'token'", "My-Key:/etc/key"}, {NULL}},
	{"no secret: switch whose name contains key", {"x", "--auth", "true", "--use-auth=no", "sort", "--key=2"},
		{NULL}},
	{"no secret: option without a value", {"mongod", "--auth", "--port", "27017", "--auth", "-v"}, {NULL}},
	{"no secret: option for no password", {"psql", "--no-password", "db"}, {NULL}},
	{"no secret: port; user alone", {"x", "http://h:8080/a@b", "ssh://git@h/x", "https://h/a?b=c", "me@h:path"},
		{NULL}},
	{"no secret: short options of other programs", {"ssh", "-p", "22", "-i", "key", "mkdir", "-pv", "x"}, {NULL}},
	{"no secret: program that prompts for the password", {"mysql", "-p", "db", "--port=3306"}, {NULL}},
	{"no secret: flag that needs no value",
		{"torchrun", "--nproc_per_node=8", "train.py", "--data", "/x/y:z", "--lr=1e-3", "--name", "a: b"},
		{NULL}},
	{"no secret: empty and blank words", {"", " ", "x", "", "--password"}, {NULL}},
	{"no secret: jq filter, time, ratio", {"jq", ".key", "12:30:00", "16:9", "a=b=c", "-"}, {NULL}},
};

static void join(const char *const *words, char *out, size_t *ret_size)
{
	*ret_size = 0;
	for (; *words != NULL; words++) {
		strcpy(out + *ret_size, *words);
		*ret_size += strlen(*words) + 1;
	}
}

static void check(void **state)
{
	const struct row *row = *state;
	char words[2048], expected[2048];
	size_t size, expected_size;
	struct buf out;
	buf_init(&out, 1 << 16);
	join(row->words, words, &size);
	join(row->expected[0] != NULL ? row->expected : row->words, expected, &expected_size);
	redact_words(words, size, false, &out);
	for (size_t i = 0; i < out.size && i < expected_size; i += strlen(expected + i) + 1)
		assert_string_equal(out.data + i, expected + i);
	assert_int_equal(out.size, expected_size);
	buf_finish(&out);
}

// Every truncation of every row: nothing is read beyond the end, and the redacted part of a URL stays redacted.
static void cut(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char words[2048];
		size_t size;
		join(rows[i].words, words, &size);
		for (size_t n = 0; n <= size; n++) {
			char *exact = malloc(n + 1);
			struct buf out;
			memcpy(exact, words, n);
			buf_init(&out, 1 << 16);
			char *whole = realloc(exact, n > 0 ? n : 1);
			redact_words(whole, n, true, &out);
			assert_true(out.size <= 4 * size + 4);
			buf_finish(&out);
			free(whole);
		}
	}
	static const char url[] = "x\0postgresql://me:hunter2";
	struct buf out;
	buf_init(&out, 100);
	redact_words(url, sizeof(url) - 1, true, &out);
	assert_string_equal(out.data + 2, "postgresql://me:***");
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "command lines truncated at any byte: no secret appears", cut);
	return rows_run(&tests, "redact");
}
