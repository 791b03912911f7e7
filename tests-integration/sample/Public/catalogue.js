// @ts-check
// The catalogue as a page without a build: `treefold client ts --out Public/api --name shop` writes the
// client that it imports, and an editor checks this file against its types.
import { connect } from "./api/shop.js";

/** @typedef {import("./api/shop.js").Listed_v2} Listed */

const client = connect(location.origin);
const books = find("books", HTMLUListElement);
const more = find("more", HTMLButtonElement);
/** @type {AsyncIterator<{ items: Listed[], next: string | null }> | undefined} */
let pages;

find("search", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  search(new FormData(find("search", HTMLFormElement)).get("title"));
});
more.addEventListener("click", showNextPage);
find("login", HTMLFormElement).addEventListener("submit", logIn);
search("");

/** @param {FormDataEntryValue | null} title */
function search(title) {
  books.replaceChildren();
  const query = { title__icontains: String(title), limit: 2 };
  pages = client.v2.book.get.pages({ query })[Symbol.asyncIterator]();
  return showNextPage();
}

async function showNextPage() {
  const { value, done } = (await pages?.next()) ?? { done: true };
  if (!done) books.append(...value.items.map(showListed));
  more.hidden = done === true || value.next === null;
}

/** @param {Listed} listed */
function showListed(listed) {
  const line = document.createElement("li");
  const button = line.appendChild(document.createElement("button"));
  button.textContent = `${listed.title} by ${listed.author.name}, ${listed.cents / 100}`;
  button.addEventListener("click", () => showBook(listed.isbn));
  return line;
}

/** @param {string} isbn */
async function showBook(isbn) {
  const result = await client.v2.book(isbn).get.safe();
  const reviews = result.ok ? `${result.data.title}: ${result.data.reviews.count} reviews` : "It is gone";
  find("book", HTMLElement).textContent = reviews;
}

/** @param {SubmitEvent} event */
async function logIn(event) {
  event.preventDefault();
  const form = new FormData(find("login", HTMLFormElement));
  const json = { name: String(form.get("name")), password: String(form.get("password")) };
  const result = await client.v1.session.post.safe({ json });
  find("caller", HTMLElement).textContent = result.ok ? `Hello ${result.data.name}` : "That is not right";
}

/** @template {HTMLElement} T @param {string} id @param {new () => T} kind @returns {T} */
function find(id, kind) {
  const element = document.getElementById(id);
  if (element instanceof kind) return element;
  throw new Error(`No ${kind.name} #${id} in the page`);
}
