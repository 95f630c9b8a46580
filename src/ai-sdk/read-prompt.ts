import type { LanguageModelV3Message, LanguageModelV3Prompt, LanguageModelV3ToolResultPart } from '@ai-sdk/provider';
import { RuvLLMError } from '../core/errors.ts';
import type { ChatMessage } from '../runtime/lower-layers.ts';

const unsupported = (part: string): Error =>
  new RuvLLMError('unsupported', `the model reads only text, the prompt has a part of type ${JSON.stringify(part)}`);

function outputText({ output }: LanguageModelV3ToolResultPart): string {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value;
    case 'json':
    case 'error-json':
      return JSON.stringify(output.value);
    case 'execution-denied':
      return `denied${output.reason === undefined ? '' : `: ${output.reason}`}`;
    case 'content':
      return output.value
        .map((item) => {
          if (item.type === 'text') return item.text;
          throw unsupported(item.type);
        })
        .join('\n');
  }
}

function readMessage(message: LanguageModelV3Message): readonly ChatMessage[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }];
    case 'user': {
      const texts = message.content.map((part) => {
        if (part.type === 'text') return part.text;
        throw unsupported(part.type);
      });
      return [{ role: 'user', content: texts.join('') }];
    }
    case 'assistant': {
      let [content, reasoning] = ['', ''];
      const toolCalls: { id: string; name: string; arguments: string }[] = [];
      for (const part of message.content) {
        if (part.type === 'text') content += part.text;
        else if (part.type === 'reasoning') reasoning += part.text;
        else if (part.type === 'tool-call') {
          const { toolCallId: id, toolName: name, input } = part;
          toolCalls.push({ id, name, arguments: typeof input === 'string' ? input : JSON.stringify(input) });
        } else throw unsupported(part.type);
      }
      return [
        {
          role: 'assistant',
          content,
          ...(reasoning === '' ? {} : { reasoning }),
          ...(toolCalls.length === 0 ? {} : { toolCalls }),
        },
      ];
    }
    case 'tool':
      return message.content.map((part) => {
        if (part.type !== 'tool-result') throw unsupported(part.type);
        return { role: 'tool', content: outputText(part), toolCallId: part.toolCallId, name: part.toolName };
      });
  }
}

/** The messages of a prompt of the AI SDK. */
export const readPrompt = (prompt: LanguageModelV3Prompt): readonly ChatMessage[] => prompt.flatMap(readMessage);
