/* Styles and scripts as the build embeds them (tools/embed-assets.py). */
#pragma once

#include "report/page/page.h"

#include <stddef.h>

enum { PAGE_SCRIPTS_MAX = 2 }; // dygraphs, and ours

struct page_asset {
	const char *text;
	size_t size;
	const char *hash; // "sha256-…", as a Content-Security-Policy has it
};

struct page_assets {
	struct page_asset style, scripts[PAGE_SCRIPTS_MAX];
	size_t n_scripts;
};

extern const struct page_assets page_assets[PAGE_SCRIPT_LIVE + 1];
