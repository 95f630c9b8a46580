import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { directionOf } from '../../format/direction.ts';
import { visibleText } from '../../format/visible-text.ts';
import { editMessage, regenerate } from './answer.ts';
import { Details } from './details.tsx';
import { Feedback } from './feedback.tsx';
import { MarkdownText } from './markdown-text.tsx';
import { PlainText } from './long-text.tsx';
import { modelOf } from './models.ts';
import { updateConversation } from './store.ts';
import type { Conversation, Message } from './types.ts';
import { showVersion } from './versions.ts';

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
  const isEditing = useSignal(false);
  const field = useRef<HTMLTextAreaElement>(null);
  if (isEditing.value) {
    const send = (event: Event): void => {
      event.preventDefault();
      const text = field.current!.value;
      if (text.trim() === '') return;
      isEditing.value = false;
      void editMessage(conversation.id, message.id, text, modelOf(conversation.model));
    };
    return (
      <article class="message user" aria-label="You">
        <form class="bubble editing" onSubmit={send}>
          <textarea
            class="input"
            rows={4}
            aria-label="Edit message"
            dir={directionOf(message.text)}
            defaultValue={message.text}
            ref={field}
          />
          <div class="row end">
            <Button isSmall onClick={() => (isEditing.value = false)}>
              Cancel
            </Button>
            <Button isSmall kind="primary" type="submit">
              Send
            </Button>
          </div>
        </form>
      </article>
    );
  }
  return (
    <article class="message user" aria-label="You">
      <div class="bubble">
        <PlainText text={message.text} />
      </div>
      <div class="message-actions">
        <CopyButton text={message.text} label="Copy message" />
        <Button
          kind="plain"
          isSmall
          icon="edit"
          label="Edit message"
          isDisabled={!isIdle}
          onClick={() => (isEditing.value = true)}
        />
        <VersionSwitch {...{ conversation, message, isIdle, versions }} />
      </div>
    </article>
  );
}

function AssistantMessage({ conversation, message, isIdle, isLast, versions }: MessageProps) {
  const { text, reasoning, state, failure, details } = message;
  return (
    <article class="message assistant" aria-label="Answer" aria-busy={state === 'streaming'}>
      {reasoning !== '' && (
        <details class="reasoning">
          <summary>{text === '' && state === 'streaming' ? 'Reasoning…' : 'Reasoning'}</summary>
          <PlainText text={reasoning} />
        </details>
      )}
      {text !== '' && <MarkdownText text={text} isComplete={state !== 'streaming'} />}
      {state === 'streaming' && text === '' && reasoning === '' && (
        <p class="waiting" aria-hidden="true">
          <span />
          <span />
          <span />
        </p>
      )}
      {state === 'stopped' && <p class="small soft">Stopped.</p>}
      {failure !== null && (
        <div class="notice" role="alert">
          <p>{visibleText(failure)}</p>
        </div>
      )}
      {state !== 'streaming' && (
        <div class="message-actions">
          {text !== '' && <CopyButton text={text} label="Copy answer" />}
          {isLast && (
            <Button
              kind="plain"
              isSmall
              icon="refresh"
              label="Regenerate answer"
              isDisabled={!isIdle}
              onClick={() => void regenerate(conversation.id, message.id, modelOf(conversation.model))}
            />
          )}
          <VersionSwitch {...{ conversation, message, isIdle, versions }} />
          {details !== null && text !== '' && <Feedback conversationId={conversation.id} message={message} />}
          {details !== null && <Details details={details} />}
        </div>
      )}
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
        label="Previous version"
        isDisabled={!isIdle || number === 1}
        onClick={() => show(-1)}
      />
      <span aria-label={`Version ${number} of ${count}`}>
        {number} / {count}
      </span>
      <Button
        kind="plain"
        isSmall
        icon="right"
        label="Next version"
        isDisabled={!isIdle || number === count}
        onClick={() => show(1)}
      />
    </span>
  );
}
