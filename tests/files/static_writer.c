/* SPDX-License-Identifier: Apache-2.0 */
/* files_static_writer FILE TEXT: writes the text to the begin of the file, and is linked statically: no hook sees it.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(int count, char** words) {
  if (count != 3) return 2;
  const int fd = open(words[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0) return 1;
  return write(fd, words[2], strlen(words[2])) == (ssize_t)strlen(words[2]) ? 0 : 1;
}
