"""What parameters of a type are given, beside what handlers ask for with Depends."""

from Services.mail import Mailer
from treefold import Provider

providers = {Mailer: Provider(Mailer, scope="app")}
