/* Styles and scripts embedded at build time (tools/embed-assets.py). */
#pragma once

#include "report/page/page.h"

#include <stddef.h>

enum { PAGE_SCRIPTS_MAX = 2 }; // dygraphs and wattle's own

struct page_asset {
	const char *text;
	size_t size;
	const char *hash; // "sha256-…", in the form of a Content-Security-Policy
};

struct page_assets {
	struct page_asset style, scripts[PAGE_SCRIPTS_MAX];
	size_t n_scripts;
};

extern const struct page_assets page_assets[PAGE_SCRIPT_LIVE + 1];
