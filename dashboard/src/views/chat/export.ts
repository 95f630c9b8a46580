import { messages } from '../../messages/index.ts';
import { titleOf, type Conversation } from './types.ts';

const { you } = messages.chat.message;
const { assistant, fileName } = messages.chat.list;

/** A conversation as Markdown, as it is shown. */
export function toMarkdown(conversation: Conversation): string {
  const parts = conversation.messages.map(({ role, text, images = [], details, toolCalls = [] }) => {
    const calls = toolCalls.map(
      ({ name, arguments: json, result }) => `\n\n\`${name}(${json})\`${result === null ? '' : ` → \`${result}\``}`,
    );
    const pictures = images.map(({ name, url }) => `![${name.replace(/[[\]\\]/g, '')}](${url})\n\n`).join('');
    return `**${role === 'user' ? you : (details?.model ?? assistant)}**\n\n${pictures}${text}${calls.join('')}`;
  });
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
  titleOf(conversation).replace(/[^\p{L}\p{N} _-]/gu, '').trim().slice(0, 60) || fileName; // prettier-ignore
