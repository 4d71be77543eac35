/* Included before each file of a portable build: symbols of an older glibc where the newest ones are all that keeps a wheel from it.
 * hypot of 2.35 differs in errno only. Without this, wheels need 2.35; with it 2.34, which Red Hat Enterprise Linux 9 has. */
__asm__(".symver hypot, hypot@GLIBC_2.2.5");
