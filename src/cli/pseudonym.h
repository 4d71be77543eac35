/* What names a machine or a part of it (serial numbers, UUIDs, MAC addresses, the host's name) becomes a number in the
 * order of appearance: the same one each time within a capture, and nothing that leads back. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum pseudonym_kind { PSEUDONYM_HOST, PSEUDONYM_UUID, PSEUDONYM_MAC, PSEUDONYM_SERIAL, PSEUDONYM_KINDS };

struct pseudonyms {
	struct pseudonym {
		enum pseudonym_kind kind;
		unsigned number; // from 1, of its kind
		char *original;  // owned
	} * all;                 // owned
	size_t n, capacity;
	char host[256]; // "" none
};

void pseudonyms_init(struct pseudonyms *pseudonyms, const char *host);
void pseudonyms_finish(struct pseudonyms *pseudonyms);
// The pseudonym of a whole word; for SERIAL as long as the word, in digits.
void pseudonym_put(struct pseudonyms *pseudonyms, enum pseudonym_kind kind, const char *word, size_t length,
	struct buf *out);
// The text with the UUIDs and MAC addresses in it replaced; with_host: the host's name as a word of its own, too.
void pseudonym_scrub(struct pseudonyms *pseudonyms, const char *text, size_t size, bool with_host, struct buf *out);
// Whether there is a MAC address in the text: such names of devices are left out whole.
bool pseudonym_has_mac(const char *text);
