import { Button } from '../../components/button.tsx';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import type { ChatImage } from './chat-image.ts';

const text = messages.chat.images;

/** The images of a message; with `onRemove`, each has a button. */
export function ImageList({
  images,
  onRemove = null,
}: {
  images: readonly ChatImage[];
  onRemove?: ((image: ChatImage) => void) | null;
}) {
  if (images.length === 0) return null;
  return (
    <ul class={onRemove === null ? 'images' : 'images attached'} aria-label={text.list}>
      {images.map((image, index) => (
        <li key={index}>
          <img src={image.url} alt={visibleText(image.name)} title={visibleText(image.name)} />
          {onRemove !== null && (
            <Button isSmall icon="close" label={text.remove(visibleText(image.name))} onClick={() => onRemove(image)} />
          )}
        </li>
      ))}
    </ul>
  );
}
