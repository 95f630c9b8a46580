import type { ParsedDocument } from './types.ts';
import { parsePlainText } from './plain-text.ts';

export function parseHtml(text: string): ParsedDocument {
  return parsePlainText(text);
}
