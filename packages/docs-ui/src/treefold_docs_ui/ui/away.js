// Requests of this page, and what is said where none of them is answered.

export const AWAY = "The server is away: it did not answer. Start it again, then try once more.";

/** Fetch; a request without an answer fails with words for a reader, a cancelled one as it is. */
export async function ask(url, options) {
  const request = new Request(url, options); // fails by itself for a field that cannot be sent
  try {
    return await fetch(request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(AWAY, { cause: error });
  }
}
