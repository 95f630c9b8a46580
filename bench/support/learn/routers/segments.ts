/** More segments cost time without new information. */
export const MAX_SEGMENTS = 4;

/** The segments before the whole: earlier turns of a conversation, or the parts of a single one by its lines, of about equal length. */
export function segmentTurns(turns: readonly string[]): string[] {
  if (turns.length > 1) return turns.slice(-MAX_SEGMENTS - 1, -1);
  const lines = (turns[0] ?? '').split('\n').filter((line) => line.trim() !== '');
  if (lines.length <= 1) return [];
  const total = lines.reduce((sum, line) => sum + line.length, 0);
  const segments: string[] = [];
  let current = '';
  let done = 0;
  for (const line of lines) {
    current += current === '' ? line : `\n${line}`;
    done += line.length;
    if (done >= ((segments.length + 1) * total) / MAX_SEGMENTS) {
      segments.push(current);
      current = '';
    }
  }
  if (current !== '') segments.push(current);
  return segments.slice(0, MAX_SEGMENTS);
}
