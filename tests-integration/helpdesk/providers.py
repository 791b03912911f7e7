from Models.people import Organisation
from Models.tickets import Ticket
from Services.mail import Mailer
from Services.tickets import Desk, organisation_of_path, visible_ticket
from treefold import Provider

providers = {
    Desk: Desk,
    Mailer: Provider(Mailer, "app"),
    Organisation: organisation_of_path,
    Ticket: visible_ticket,
}
