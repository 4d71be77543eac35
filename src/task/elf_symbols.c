/* Function symbols of an ELF file of 64 or 32 bits, in this machine's byte order.
 *
 * The file may be damaged or hostile: it is read with pread into memory of bounded size, never mapped (a file that shrinks would
 * kill the reader), and every offset and index is checked. */
#include "task/task.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { TRIES = 16, SEGMENTS_MAX = 1 << 12, NOTES_MAX = 1 << 16, LINK_MAX = 4096 };
static const uint64_t table_bytes_max = UINT64_C(1) << 30;

struct elf {
	int fd;
	uint64_t size;
	bool is_64;
	Elf64_Ehdr header;    // 32-bit structures are widened
	Elf64_Shdr *sections; // owned
	size_t n_sections;
};

/* ---- reading ---- */

static bool read_at(const struct elf *elf, uint64_t at, void *out, size_t size)
{
	if (at > elf->size || size > elf->size - at)
		return false;
	return pread(elf->fd, out, size, (off_t)at) == (ssize_t)size;
}

// Malloc'ed, with a NUL after the end; NULL: outside of the file, too large, or no memory.
static unsigned char *read_bytes(const struct elf *elf, uint64_t at, uint64_t size)
{
	if (size == 0 || size > table_bytes_max || at > elf->size || size > elf->size - at)
		return NULL;
	unsigned char *bytes = malloc(size + 1);
	if (bytes == NULL || !read_at(elf, at, bytes, size)) {
		free(bytes);
		return NULL;
	}
	bytes[size] = '\0';
	return bytes;
}

static bool read_header(struct elf *elf)
{
	unsigned char ident[EI_NIDENT];
	Elf32_Ehdr h;
	const uint16_t one = 1;
	unsigned char order = *(const unsigned char *)&one == 1 ? ELFDATA2LSB : ELFDATA2MSB;
	if (!read_at(elf, 0, ident, sizeof(ident)) || memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_DATA] != order)
		return false;
	elf->is_64 = ident[EI_CLASS] == ELFCLASS64;
	if (elf->is_64)
		return read_at(elf, 0, &elf->header, sizeof(elf->header));
	if (!read_at(elf, 0, &h, sizeof(h)))
		return false;
	elf->header = (Elf64_Ehdr){.e_phoff = h.e_phoff,
		.e_shoff = h.e_shoff,
		.e_phnum = h.e_phnum,
		.e_shnum = h.e_shnum,
		.e_shstrndx = h.e_shstrndx};
	return true;
}

static bool read_section(const struct elf *elf, size_t i, Elf64_Shdr *ret_section)
{
	Elf32_Shdr s;
	uint64_t at = elf->header.e_shoff + i * (elf->is_64 ? sizeof(*ret_section) : sizeof(s));
	if (elf->is_64)
		return read_at(elf, at, ret_section, sizeof(*ret_section));
	if (!read_at(elf, at, &s, sizeof(s)))
		return false;
	*ret_section = (Elf64_Shdr){.sh_name = s.sh_name,
		.sh_type = s.sh_type,
		.sh_flags = s.sh_flags,
		.sh_addr = s.sh_addr,
		.sh_offset = s.sh_offset,
		.sh_size = s.sh_size,
		.sh_link = s.sh_link};
	return true;
}

static bool read_segment(const struct elf *elf, size_t i, Elf64_Phdr *ret_segment)
{
	Elf32_Phdr p;
	uint64_t at = elf->header.e_phoff + i * (elf->is_64 ? sizeof(*ret_segment) : sizeof(p));
	if (elf->is_64)
		return read_at(elf, at, ret_segment, sizeof(*ret_segment));
	if (!read_at(elf, at, &p, sizeof(p)))
		return false;
	*ret_segment = (Elf64_Phdr){.p_type = p.p_type,
		.p_offset = p.p_offset,
		.p_vaddr = p.p_vaddr,
		.p_filesz = p.p_filesz};
	return true;
}

static int open_elf(struct elf *elf, const char *path)
{
	struct stat st;
	*elf = (struct elf){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
	if (elf->fd < 0)
		return -errno;
	if (fstat(elf->fd, &st) != 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	elf->size = (uint64_t)st.st_size;
	if (!read_header(elf) || elf->header.e_phnum > SEGMENTS_MAX)
		return -EINVAL;
	elf->sections = calloc_array(elf->header.e_shnum, sizeof(*elf->sections));
	while (elf->sections != NULL && elf->n_sections < elf->header.e_shnum &&
		read_section(elf, elf->n_sections, &elf->sections[elf->n_sections]))
		elf->n_sections++;
	return elf->sections != NULL ? 0 : -ENOMEM;
}

static void close_elf(struct elf *elf)
{
	if (elf->fd >= 0)
		close(elf->fd);
	free(elf->sections);
}

/* ---- identity ---- */

// The build ID among the notes of one section or segment.
static bool find_build_id(const struct elf *elf, uint64_t at, uint64_t size, char *out, size_t out_size)
{
	static const char owner[] = "GNU";
	wattle_cleanup_free unsigned char *notes = size <= NOTES_MAX ? read_bytes(elf, at, size) : NULL;
	for (uint64_t i = 0; notes != NULL && i + sizeof(Elf64_Nhdr) <= size;) {
		Elf64_Nhdr note; // the same for 32 bits
		memcpy(&note, notes + i, sizeof(note));
		uint64_t name = i + sizeof(note), text = name + (((uint64_t)note.n_namesz + 3) & ~UINT64_C(3));
		uint64_t end = text + (((uint64_t)note.n_descsz + 3) & ~UINT64_C(3));
		if (end > size)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(owner) &&
			memcmp(notes + name, owner, sizeof(owner)) == 0 && note.n_descsz > 0 &&
			2 * (size_t)note.n_descsz < out_size) {
			for (size_t k = 0; k < note.n_descsz; k++)
				snprintf(out + 2 * k, 3, "%02x", notes[text + k]);
			return true;
		}
		i = end;
	}
	return false;
}

static bool build_id_of(const struct elf *elf, char *out, size_t size)
{
	for (size_t i = 0; i < elf->n_sections; i++)
		if (elf->sections[i].sh_type == SHT_NOTE &&
			find_build_id(elf, elf->sections[i].sh_offset, elf->sections[i].sh_size, out, size))
			return true;
	for (size_t i = 0; i < elf->header.e_phnum; i++) {
		Elf64_Phdr segment;
		if (read_segment(elf, i, &segment) && segment.p_type == PT_NOTE &&
			find_build_id(elf, segment.p_offset, segment.p_filesz, out, size))
			return true;
	}
	return false;
}

// The file is still the one that was mapped: by build ID, else by inode, size and time of change.
static bool is_same(const struct elf *elf, const struct run_profile_module *module)
{
	char build_id[2 * 64 + 1];
	struct stat st;
	if (module->build_id != NULL)
		return build_id_of(elf, build_id, sizeof(build_id)) && strcmp(build_id, module->build_id) == 0;
	return fstat(elf->fd, &st) == 0 && module->inode == (int64_t)st.st_ino && module->size_bytes == st.st_size &&
		module->mtime_ns == (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
}

/* ---- symbols ---- */

static int by_begin(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin > y->begin ? 1 : -1;
	if (x->size != y->size) // the symbol with a size is the function, others are labels
		return x->size < y->size ? 1 : -1;
	return strcmp(x->name, y->name);
}

static Elf64_Sym symbol_at(const struct elf *elf, const unsigned char *table, size_t i)
{
	Elf64_Sym symbol;
	Elf32_Sym s;
	if (elf->is_64) {
		memcpy(&symbol, table + i * sizeof(symbol), sizeof(symbol));
		return symbol;
	}
	memcpy(&s, table + i * sizeof(s), sizeof(s));
	return (Elf64_Sym){.st_name = s.st_name,
		.st_info = s.st_info,
		.st_shndx = s.st_shndx,
		.st_value = s.st_value,
		.st_size = s.st_size};
}

static bool is_function(const Elf64_Sym *symbol)
{
	unsigned char type = ELF64_ST_TYPE(symbol->st_info);
	return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) && symbol->st_shndx != SHN_UNDEF &&
		symbol->st_name != 0 && symbol->st_value != 0;
}

static int read_table(const struct elf *elf, const Elf64_Shdr *section, struct elf_symbols *symbols)
{
	size_t entry = elf->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	const Elf64_Shdr *names = section->sh_link < elf->n_sections ? &elf->sections[section->sh_link] : NULL;
	wattle_cleanup_free unsigned char *table = read_bytes(elf, section->sh_offset, section->sh_size);
	if (table == NULL || names == NULL)
		return -EINVAL;
	symbols->names = (char *)read_bytes(elf, names->sh_offset, names->sh_size);
	symbols->at = calloc_array(section->sh_size / entry, sizeof(*symbols->at));
	if (symbols->names == NULL || symbols->at == NULL)
		return -EINVAL;
	for (size_t i = 0; i < section->sh_size / entry; i++) {
		Elf64_Sym symbol = symbol_at(elf, table, i);
		if (is_function(&symbol) && symbol.st_name < names->sh_size &&
			symbols->names[symbol.st_name] != '$') // ARM's mapping symbols
			symbols->at[symbols->n++] = (struct elf_symbol){symbol.st_value, symbol.st_size,
				symbols->names + symbol.st_name};
	}
	if (symbols->n > 0)
		qsort(symbols->at, symbols->n, sizeof(*symbols->at), by_begin);
	return symbols->n > 0 ? 0 : -ENODATA;
}

static void drop_table(struct elf_symbols *symbols)
{
	free(symbols->at);
	free(symbols->names);
	symbols->at = NULL;
	symbols->names = NULL;
	symbols->n = 0;
}

static int read_symbols(const struct elf *elf, uint32_t type, struct elf_symbols *symbols)
{
	for (size_t i = 0; i < elf->n_sections; i++) {
		if (elf->sections[i].sh_type != type)
			continue;
		int r = read_table(elf, &elf->sections[i], symbols);
		if (r < 0)
			drop_table(symbols);
		return r;
	}
	return -ENODATA;
}

static void read_segments(const struct elf *elf, struct elf_symbols *symbols)
{
	symbols->segments = calloc_array(elf->header.e_phnum, sizeof(*symbols->segments));
	for (size_t i = 0; symbols->segments != NULL && i < elf->header.e_phnum; i++) {
		Elf64_Phdr segment;
		if (read_segment(elf, i, &segment) && segment.p_type == PT_LOAD)
			symbols->segments[symbols->n_segments++] = (struct elf_segment){segment.p_offset,
				segment.p_filesz, segment.p_vaddr};
	}
}

/* ---- separate debug information ---- */

static int read_debug_file(const char *path, const char *build_id, struct elf_symbols *symbols)
{
	struct elf elf;
	char found[2 * 64 + 1];
	int r = open_elf(&elf, path);
	if (r == 0 && build_id[0] != '\0' && (!build_id_of(&elf, found, sizeof(found)) || strcmp(found, build_id) != 0))
		r = -ESTALE;
	if (r == 0)
		r = read_symbols(&elf, SHT_SYMTAB, symbols);
	close_elf(&elf);
	return r;
}

static int read_by_build_id(const char *build_id, struct elf_symbols *symbols)
{
	char path[512];
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
	int r = read_debug_file(path, build_id, symbols);
	const char *cache = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME");
	if (r == 0 || (cache == NULL && home == NULL))
		return r;
	snprintf(path, sizeof(path), "%s%s/%s/debuginfo", cache != NULL ? cache : home,
		cache != NULL ? "" : "/.cache/debuginfod_client", build_id);
	return read_debug_file(path, build_id, symbols);
}

// The name in .gnu_debuglink; "": none.
static void debug_link(const struct elf *elf, char *out, size_t size)
{
	out[0] = '\0';
	const Elf64_Shdr *names = elf->header.e_shstrndx < elf->n_sections ? &elf->sections[elf->header.e_shstrndx]
									   : NULL;
	wattle_cleanup_free char *text = names != NULL ? (char *)read_bytes(elf, names->sh_offset, names->sh_size)
						       : NULL;
	for (size_t i = 0; text != NULL && i < elf->n_sections; i++) {
		const Elf64_Shdr *section = &elf->sections[i];
		if (section->sh_name >= names->sh_size || strcmp(text + section->sh_name, ".gnu_debuglink") != 0 ||
			section->sh_size > LINK_MAX)
			continue;
		wattle_cleanup_free char *name = (char *)read_bytes(elf, section->sh_offset, section->sh_size);
		if (name != NULL && strchr(name, '/') == NULL)
			text_copy(out, size, name);
		return;
	}
}

static int read_by_link(const struct elf *elf, const char *path, const char *build_id, struct elf_symbols *symbols)
{
	static const char *const formats[] = {"%.*s/%s", "%.*s/.debug/%s", "/usr/lib/debug%.*s/%s"};
	char link[256], file[8192];
	const char *slash = strrchr(path, '/');
	debug_link(elf, link, sizeof(link));
	int r = -ENOENT;
	for (size_t i = 0; r != 0 && link[0] != '\0' && slash != NULL && build_id[0] != '\0' && i < ARRAY_SIZE(formats);
		i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(file, sizeof(file), formats[i], (int)(slash - path), path, link);
#pragma GCC diagnostic pop
		r = read_debug_file(file, build_id, symbols);
	}
	return r;
}

int elf_symbols_read(const struct run_profile_module *module, struct elf_symbols *ret_symbols)
{
	struct elf elf;
	char build_id[2 * 64 + 1] = "";
	struct elf_symbols symbols = {0};
	int r = module->path[0] == '/' ? open_elf(&elf, module->path) : -ENOENT;
	if (module->path[0] != '/')
		return r;
	if (r == 0 && !is_same(&elf, module))
		r = -ESTALE;
	if (r == 0) {
		read_segments(&elf, &symbols);
		(void)build_id_of(&elf, build_id, sizeof(build_id));
		r = read_symbols(&elf, SHT_SYMTAB, &symbols);
		if (r < 0 && build_id[0] != '\0')
			r = read_by_build_id(build_id, &symbols);
		if (r < 0)
			r = read_by_link(&elf, module->path, build_id, &symbols);
		if (r < 0)
			r = read_symbols(&elf, SHT_DYNSYM, &symbols);
	}
	close_elf(&elf);
	if (r < 0)
		elf_symbols_finish(&symbols);
	else
		*ret_symbols = symbols;
	return r;
}

void elf_symbols_finish(struct elf_symbols *symbols)
{
	drop_table(symbols);
	free(symbols->segments);
	*symbols = (struct elf_symbols){0};
}

/* ---- looking up ---- */

static bool address_of(const struct elf_symbols *symbols, uint64_t offset, uint64_t *ret_address)
{
	for (size_t i = 0; i < symbols->n_segments; i++) {
		const struct elf_segment *segment = &symbols->segments[i];
		// The kernel maps whole pages, so the bytes around a segment are mapped too.
		if (offset - segment->offset < segment->size) {
			*ret_address = segment->address + (offset - segment->offset);
			return true;
		}
	}
	return false;
}

const char *elf_symbols_find(const struct elf_symbols *symbols, uint64_t offset)
{
	uint64_t address;
	size_t low = 0, high = symbols->n;
	if (!address_of(symbols, offset, &address))
		return NULL;
	while (low < high) { // the first symbol that begins after the address
		size_t middle = low + (high - low) / 2;
		if (symbols->at[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low, tries = 0; i-- > 0 && tries < TRIES;
		tries++) // labels and small symbols may lie inside larger ones
		if (address - symbols->at[i].begin < symbols->at[i].size)
			return symbols->at[i].name;
	// Assembler code may have no sizes: up to the next symbol.
	bool is_open = low > 0 && low < symbols->n && symbols->at[low - 1].size == 0;
	return is_open ? symbols->at[low - 1].name : NULL;
}
