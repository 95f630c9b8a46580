import { RuvLLMError } from '../../core/errors.ts';
import type { Prompt } from '../../runtime/prompt.ts';
import { collectAnswer } from '../collect-answer.ts';
import type { CommandRunner } from '../command.ts';
import type { FlagValues } from '../flags.ts';
import { readGenerateParams } from '../generate-flags.ts';
import { readModelConfig } from '../load-flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { readArgumentOrInput } from '../read-input.ts';
import { describeAnswer, describeModel } from '../summary.ts';
import { usageError } from '../usage-error.ts';

/** `chat`: one user turn in the model's template. `raw`: the text as it is. */
type PromptFormat = 'chat' | 'raw';

/** Answers one prompt. */
export const run: CommandRunner = async (context) => {
  const { io, output, values } = context;
  const [reference, argument] = context.args as [string, string?];
  const params = readGenerateParams(values);
  const config = readModelConfig(values, io.environment);
  const askedFormat = readFormat(values);
  if (Object.hasOwn(values, '--logprobs') && !output.isJson) {
    throw usageError('--logprobs needs --json: there is no place for them in the text', '--logprobs');
  }
  const text = await readArgumentOrInput(argument, context);
  // A template would wrap nothing into something, and the model would answer a question nobody asked.
  if (text === '') throw new RuvLLMError('empty_prompt', 'the prompt is empty');

  const model = await loadWithProgress(context, reference, config, values);
  try {
    const info = model.modelInfo();
    if (values['--verbose'] === true) output.note(describeModel(info));
    const promptFormat = askedFormat ?? (info.chatTemplate === 'file' ? 'chat' : 'raw');
    const prompt = toPrompt(text, promptFormat, values['--system'] as string | undefined);
    const parseSpecial = values['--special'] === true;
    const promptTokenIds = model.encodePrompt(prompt, { parseSpecial });
    const options = { ...params, parseSpecial, signal: io.signal };
    const answer = await collectAnswer(model.generateStream(prompt, options), (piece) => output.text(piece)).finally(
      () => (io.stdout.isTerminal ? output.text('\n') : undefined),
    );
    output.document({ model: { reference, ...info }, promptFormat, promptTokenIds, ...answer });
    const summary = describeAnswer(answer, info.maxContext);
    if (values['--verbose'] === true) output.note(summary);
    else output.aside(summary);
  } finally {
    await model.dispose();
  }
};

function readFormat(values: FlagValues): PromptFormat | null {
  const isChat = values['--chat'] === true || Object.hasOwn(values, '--system');
  if (values['--raw'] !== true) {
    if (values['--special'] === true)
      throw usageError('--special needs --raw: a chat template does that by itself', '--special');
    return isChat ? 'chat' : null;
  }
  if (isChat) throw usageError('--raw gives the prompt as it is; it cannot go with --chat or --system', '--raw');
  return 'raw';
}

function toPrompt(text: string, format: PromptFormat, system: string | undefined): Prompt {
  if (format === 'raw') return text;
  const turns = [{ role: 'user' as const, content: text }];
  return system === undefined ? turns : [{ role: 'system' as const, content: system }, ...turns];
}
