import { titleOf, type Conversation } from './types.ts';

/** A conversation as Markdown, as it is shown. */
export function toMarkdown(conversation: Conversation): string {
  const parts = conversation.messages.map(({ role, text, details }) =>
    role === 'user' ? `**You**\n\n${text}` : `**${details?.model ?? 'Assistant'}**\n\n${text}`,
  );
  return `# ${titleOf(conversation)}\n\n${parts.join('\n\n---\n\n')}\n`;
}

/** Offers a text as a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(url);
}

/** The title without characters that file systems reserve. */
export const fileNameOf = (conversation: Conversation): string =>
  titleOf(conversation).replace(/[^\p{L}\p{N} _-]/gu, '').trim().slice(0, 60) || 'conversation'; // prettier-ignore
