/**
 * Whether a relative path from a hub or an archive may be joined to a folder: forward slashes, no `..`, and nothing
 * with a special meaning on some system (drive letters and streams `:`, backslashes, control characters, the trailing
 * dots and spaces that Windows drops).
 */
export function isSafeRelativePath(path: string): boolean {
  if (path.length === 0 || path.length > 1024 || /[\\:*?"<>|\p{Cc}]/u.test(path)) return false;
  return path.split('/').every((part) => part !== '' && part.length <= 255 && !/^\.{1,2}$|[. ]$/.test(part));
}
