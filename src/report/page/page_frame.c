#include "report/page/page.h"

#include "report/html.h"
#include "report/page/assets.h"

static const char ICON[] =
	"<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
	"%3Cpath fill='%230072b2' d='M9 0 2 9h5l-1 7 8-10H8z'/%3E%3C/svg%3E\">\n";

void page_policy(struct buf *out, enum page_script script, bool connect)
{
	const struct page_assets *assets = &page_assets[script];
	buf_str(out, "default-src 'none'; script-src");
	for (size_t i = 0; i < assets->n_scripts; i++)
		buf_printf(out, " '%s'", assets->scripts[i].hash);
	if (assets->n_scripts == 0)
		buf_str(out, " 'none'");
	buf_printf(out, "; style-src '%s'; img-src data:; %sbase-uri 'none'; form-action 'none'", assets->style.hash,
		connect ? "connect-src 'self'; " : "");
}

void page_begin(struct buf *out, const char *title, enum page_script script, bool connect)
{
	const struct page_assets *assets = &page_assets[script];
	buf_str(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"");
	page_policy(out, script, connect);
	buf_str(out,
		"\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<meta name=\"generator\" content=\"wattle " WATTLE_VERSION "\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
	html_text(out, title);
	buf_str(out, "</title>\n");
	buf_str(out, ICON);
	buf_str(out, "<style>");
	buf_add(out, assets->style.text, assets->style.size);
	buf_str(out, "</style>\n");
	// Scripts are in the head, because they select light or dark mode and hide fallback content before the first paint.
	for (size_t i = 0; i < assets->n_scripts; i++) {
		buf_str(out, "<script>");
		buf_add(out, assets->scripts[i].text, assets->scripts[i].size);
		buf_str(out, "</script>\n");
	}
	buf_str(out,
		"</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to content</a>\n"
		"<header class=\"bar\"><span class=\"brand\">wattle</span><span class=\"bar-tools\">"
		"<button type=\"button\" id=\"theme\" class=\"tool\" hidden>Dark</button></span></header>\n"
		"<main id=\"main\">\n");
}

void page_end(struct buf *out, enum page_script script)
{
	buf_str(out, "</main>\n<footer class=\"bar\">Made by wattle " WATTLE_VERSION ".");
	if (page_assets[script].n_scripts > 1)
		buf_str(out, " Charts by dygraphs, MIT licence.");
	buf_str(out,
		script == PAGE_SCRIPT_LIVE ? " This page contacts only its own server."
					   : " This page loads no external resources.");
	buf_str(out, "</footer>\n</body>\n</html>\n");
}
