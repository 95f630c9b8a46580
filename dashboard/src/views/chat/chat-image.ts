/** An image of a message. */
export interface ChatImage {
  readonly name: string;
  /** A data URL of a JPEG or PNG. */
  readonly url: string;
}

/** The server's limit for a request. */
export const MAX_IMAGES = 32;

const IMAGE_URL = /^data:image\/(?:png|jpeg);base64,[\w+/]+=*$/;

export const isImageUrl = (url: string): boolean => IMAGE_URL.test(url);
