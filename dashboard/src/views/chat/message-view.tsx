import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { directionOf } from '../../format/direction.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { continueAnswer, editMessage, isCutOff, regenerate, sendToolResults } from './answer.ts';
import { Details } from './details.tsx';
import { Feedback } from './feedback.tsx';
import { ImageList } from './image-list.tsx';
import { MarkdownText } from './markdown-text.tsx';
import { PlainText } from './long-text.tsx';
import { modelOf } from './models.ts';
import { Sources } from './sources.tsx';
import { updateConversation } from './store.ts';
import type { Conversation, Message } from './types.ts';
import { Teach } from './teach.tsx';
import { ToolCalls } from './tool-calls.tsx';
import { showVersion } from './versions.ts';

const words = messages.chat.message;

export interface MessageProps {
  readonly conversation: Pick<Conversation, 'id' | 'model'>;
  readonly message: Message;
  /** Whether no answer is streaming; messages can be changed only then. */
  readonly isIdle: boolean;
  readonly isLast: boolean;
  /** Null: the message has one version. */
  readonly versions: { readonly number: number; readonly count: number } | null;
}

export function MessageView(props: MessageProps) {
  return props.message.role === 'user' ? <UserMessage {...props} /> : <AssistantMessage {...props} />;
}

function UserMessage({ conversation, message, isIdle, versions }: MessageProps) {
  const { images = [] } = message;
  const isEditing = useSignal(false);
  const field = useRef<HTMLTextAreaElement>(null);
  if (isEditing.value) {
    const send = (event: Event): void => {
      event.preventDefault();
      const edited = field.current!.value;
      if (edited.trim() === '' && images.length === 0) return;
      isEditing.value = false;
      void editMessage(conversation.id, message, edited, modelOf(conversation.model));
    };
    return (
      <article class="message user" aria-label={words.you}>
        <form class="bubble editing" onSubmit={send}>
          <ImageList images={images} />
          <textarea
            class="input"
            rows={4}
            aria-label={words.edit}
            dir={directionOf(message.text)}
            defaultValue={message.text}
            ref={field}
          />
          <div class="row end">
            <Button isSmall onClick={() => (isEditing.value = false)}>
              {messages.chat.cancel}
            </Button>
            <Button isSmall kind="primary" type="submit">
              {messages.chat.composer.send}
            </Button>
          </div>
        </form>
      </article>
    );
  }
  return (
    <article class="message user" aria-label={words.you}>
      <div class="bubble">
        <ImageList images={images} />
        {message.text.trim() !== '' && <PlainText text={message.text} />}
      </div>
      <div class="message-actions">
        {message.text.trim() !== '' && <CopyButton text={message.text} label={words.copy} />}
        <Button
          kind="plain"
          isSmall
          icon="edit"
          label={words.edit}
          isDisabled={!isIdle}
          onClick={() => (isEditing.value = true)}
        />
        <VersionSwitch {...{ conversation, message, isIdle, versions }} />
      </div>
    </article>
  );
}

function AssistantMessage({ conversation, message, isIdle, isLast, versions }: MessageProps) {
  const { text, reasoning, toolCalls = [], state, failure, details } = message;
  const isRatable = details !== null && details.isInTab !== true;
  const goOn = (): void => void continueAnswer(conversation.id, message, modelOf(conversation.model));
  const askAgain = (): void => void regenerate(conversation.id, message.id, modelOf(conversation.model));
  return (
    <article class="message assistant" aria-label={words.answer} aria-busy={state === 'streaming'}>
      {reasoning !== '' && (
        <details class="reasoning">
          <summary>{text === '' && state === 'streaming' ? words.isReasoning : words.reasoning}</summary>
          <PlainText text={reasoning} />
        </details>
      )}
      {text !== '' && <MarkdownText text={text} isComplete={state !== 'streaming'} />}
      {toolCalls.length > 0 && (
        <ToolCalls
          calls={toolCalls}
          onResults={
            isLast && isIdle
              ? (results) => void sendToolResults(conversation.id, message.id, results, modelOf(conversation.model))
              : null
          }
        />
      )}
      {state === 'streaming' && text === '' && reasoning === '' && toolCalls.length === 0 && (
        <p class="waiting" aria-hidden="true">
          <span />
          <span />
          <span />
        </p>
      )}
      {details !== null && <Sources sources={details.sources} />}
      {(state === 'stopped' || (state === 'done' && isCutOff(details))) && (
        <p class="row small soft">
          {state === 'stopped' ? words.stopped : words.cutOff}
          {isLast && text !== '' && toolCalls.length === 0 && (
            <Button isSmall icon="play" isDisabled={!isIdle} onClick={goOn}>
              {words.continue}
            </Button>
          )}
        </p>
      )}
      {failure !== null && (
        <div class="notice" role="alert">
          <p>{visibleText(failure)}</p>
        </div>
      )}
      {state !== 'streaming' && (
        <div class="message-actions">
          {text !== '' && <CopyButton text={text} label={words.copyAnswer} />}
          {isLast && (
            <Button
              kind="plain"
              isSmall
              icon="refresh"
              label={words.regenerate}
              isDisabled={!isIdle}
              onClick={askAgain}
            />
          )}
          <VersionSwitch {...{ conversation, message, isIdle, versions }} />
          {isRatable && text !== '' && <Feedback conversationId={conversation.id} message={message} />}
          {details !== null && <Details details={details} />}
        </div>
      )}
      {isRatable && <Teach conversation={conversation} message={message} />}
    </article>
  );
}

/** Buttons that show other versions of a message. */
function VersionSwitch({ conversation, message, isIdle, versions }: Omit<MessageProps, 'isLast'>) {
  if (versions === null) return null;
  const { number, count } = versions;
  const show = (step: 1 | -1): void =>
    updateConversation(conversation.id, (latest) => showVersion(latest, message.id, step));
  return (
    <span class="versions small num">
      <Button
        kind="plain"
        isSmall
        icon="left"
        label={words.previousVersion}
        isDisabled={!isIdle || number === 1}
        onClick={() => show(-1)}
      />
      <span aria-label={words.version(number, count)}>
        {number} / {count}
      </span>
      <Button
        kind="plain"
        isSmall
        icon="right"
        label={words.nextVersion}
        isDisabled={!isIdle || number === count}
        onClick={() => show(1)}
      />
    </span>
  );
}
