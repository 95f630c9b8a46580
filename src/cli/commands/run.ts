import { randomUUID } from 'node:crypto';
import type { ChatMessage, MessageImage } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Model } from '../../runtime/model.ts';
import type { ModelInfo } from '../../runtime/model-info.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import { nameOption } from '../../runtime/name-option.ts';
import type { Prompt } from '../../runtime/prompt.ts';
import { collectAnswer } from '../collect-answer.ts';
import type { CommandRunner } from '../command.ts';
import { type FlagValues, withFlagNames } from '../flags.ts';
import { readGenerateOptions } from '../generate-flags.ts';
import { readModelConfig } from '../load-flags.ts';
import { fetchModel, loadWithProgress } from '../load-model.ts';
import { generateWithTools } from '../mcp/generate-with-tools.ts';
import { askAtTerminal } from '../mcp/ask-at-terminal.ts';
import { type CliTools, openCliTools } from '../mcp/open-cli-tools.ts';
import { describeRecall, openRecallMemory, readRecall } from '../memory/recall.ts';
import { readImages } from '../read-images.ts';
import { readArgumentOrInput } from '../read-input.ts';
import { describeAnswer, describeModel } from '../summary.ts';
import { conflictError, requiresError } from '../usage-error.ts';
import { readSavedDefaults } from '../saved-model.ts';
import { CHAT_FLAGS, SESSION_FLAG } from './run-flags.ts';

/** `chat`: one user turn in the model's template. `raw`: the unchanged text. */
type PromptFormat = 'chat' | 'raw';

/** Answers one prompt. */
export const run: CommandRunner = async (context) => {
  const { io, output, values } = context;
  const [name, argument] = context.args as [string, string?];
  // As in other tools: without a prompt, a terminal gets a conversation.
  if (argument === undefined && io.stdin.isTTY === true && canChat(values, output.isJson)) {
    const { run: chat } = await import('./chat.ts');
    return await chat(context);
  }
  const saved = await readSavedDefaults(name, context.config.presets);
  const { reference = name } = saved;
  const params = { ...saved.params, ...readGenerateOptions(values, io.environment) };
  const config = { ...saved.config, ...readModelConfig(values, io.environment) };
  const formatFlag = readFormat(values);
  const sessionId = readSessionId(values, config);
  const images = readImages(values);
  if (images.length > 0 && config.mmproj === undefined) throw requiresError('--image', '--mmproj');
  if (images.length > 0 && (formatFlag === 'raw' || sessionId !== null)) {
    throw conflictError('--image', '--raw or --session');
  }
  if (values['--mcp'] !== undefined && (formatFlag === 'raw' || sessionId !== null)) {
    throw conflictError('--mcp', '--raw or --session');
  }
  const recall = readRecall(values);
  if (recall === null && values['--memory'] !== undefined) throw requiresError('--memory', '--recall or --remember');
  if (recall?.remember === true && sessionId !== null) throw conflictError('--remember', '--session');
  if (Object.hasOwn(values, '--logprobs') && !output.isJson) throw requiresError('--logprobs', '--json');
  const text = await readArgumentOrInput(argument, context);
  // With a chat template, the model would answer the empty message.
  if (text === '') throw new RuvLLMError('empty_prompt', 'the prompt is empty');

  const memory = recall === null ? null : await openRecallMemory(context, () => fetchModel(context, reference));
  let model: Model | null = null;
  let tools: CliTools | null = null;
  try {
    tools = await openCliTools(context);
    // A prompt on stdin leaves no one to ask there.
    if (tools !== null && argument !== undefined && io.stdin.isTTY === true) tools.ask = askAtTerminal(io);
    model = await loadWithProgress(context, reference, { ...config, ...(memory === null ? {} : { memory }) }, values);
    const info = model.modelInfo();
    const adapterPath = (values['--adapter'] as string | undefined) ?? saved.adapter ?? undefined;
    if (adapterPath !== undefined) await model.loadAdapter(adapterPath, { name: 'adapter' });
    if (values['--verbose'] === true) output.note(describeModel(info));
    if (sessionId !== null && !model.keepsSessions) {
      throw new RuvLLMError('io', `cannot store session "${sessionId}" in the --kv-spill folder`);
    }
    const session = sessionId === null ? null : model.session(sessionId);
    const promptFormat =
      session !== null ? 'raw' : (formatFlag ?? (isChat(info, images) || tools !== null ? 'chat' : 'raw'));
    const system = (values['--system'] as string | undefined) ?? saved.system;
    const prompt = toPrompt({ text, images }, promptFormat, system, saved.messages);
    const parseSpecial = values['--special'] === true;
    // Agent memory belongs to a session; the random name cannot collide with a stored one.
    const agentSession = recall?.remember === true ? { session: `run ${randomUUID()}` } : {};
    const adapter = adapterPath === undefined ? {} : { adapter: 'adapter' };
    const options = { ...params, ...adapter, ...(recall === null ? {} : { memory: recall }), ...agentSession, parseSpecial, signal: io.signal }; // prettier-ignore
    const chunks =
      tools !== null
        ? generateWithTools(model, prompt as readonly ChatMessage[], options, tools, () => {})
        : session === null
          ? model.generateStream(prompt, options)
          : session.generateStream(text, options);
    const answer = await collectAnswer(chunks, (piece) => output.text(piece)).finally(() =>
      io.stdout.isTerminal ? output.text('\n') : undefined,
    );
    const promptTokenIds =
      session?.tokenIds.slice(0, answer.usage.promptTokens) ??
      model.encodePrompt(prompt, {
        parseSpecial,
        ...(tools === null ? {} : { tools: tools.tools.map(({ definition }) => definition) }),
      });
    const turn = session === null ? {} : { session: { id: session.id, numTurns: session.numTurns } };
    output.document({ model: { reference, ...info }, promptFormat, promptTokenIds, ...turn, ...answer });
    if (answer.memory !== undefined) output.note(describeRecall(answer.memory));
    const summary = describeAnswer(answer, info.maxContext);
    if (values['--verbose'] === true) output.note(summary);
    else output.aside(summary);
  } finally {
    await model?.dispose();
    await tools?.close();
    await memory?.close();
  }
};

/** Whether all options are also options of `chat`. */
function canChat(values: FlagValues, isJson: boolean): boolean {
  const names = CHAT_FLAGS.map(({ name }) => name);
  return !isJson && Object.keys(values).every((name) => names.includes(name));
}

function readFormat(values: FlagValues): PromptFormat | null {
  const isChat = values['--chat'] === true || Object.hasOwn(values, '--system');
  if (values['--raw'] !== true) {
    // A chat template parses control tokens itself.
    if (values['--special'] === true && !Object.hasOwn(values, '--session'))
      throw requiresError('--special', '--raw or --session');
    return isChat ? 'chat' : null;
  }
  if (isChat) throw conflictError('--raw', '--chat or --system');
  return 'raw';
}

function readSessionId(values: FlagValues, { kvSpill }: ModelConfig): string | null {
  const id = values['--session'] as string | undefined;
  if (id === undefined) return null;
  if (values['--chat'] === true || Object.hasOwn(values, '--system')) {
    throw conflictError('--session', '--chat or --system');
  }
  if (kvSpill == null) throw requiresError('--session', '--kv-spill, the folder that stores the session');
  return withFlagNames([SESSION_FLAG], values, () => nameOption(id, 'session'));
}

/** Images have a place only in a message. */
const isChat = ({ chatTemplate }: ModelInfo, images: readonly MessageImage[]): boolean =>
  chatTemplate === 'file' || images.length > 0;

function toPrompt(
  { text, images }: { readonly text: string; readonly images: readonly MessageImage[] },
  format: PromptFormat,
  system: string | null,
  firstTurns: readonly ChatMessage[],
): Prompt {
  if (format === 'raw') return text;
  const turns = [...firstTurns, { role: 'user' as const, content: text, ...(images.length === 0 ? {} : { images }) }];
  return system === null ? turns : [{ role: 'system' as const, content: system }, ...turns];
}
